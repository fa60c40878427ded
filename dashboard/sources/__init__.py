"""The pages of sources, clusters and scans, their forms, and the recent coverage of scans."""
