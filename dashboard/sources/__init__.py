"""Sources, clusters and scans: their pages, their forms, and how much was scanned lately."""
