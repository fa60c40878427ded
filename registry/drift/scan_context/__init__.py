"""What the database knows that a scan is compared with: topics, versions, queries, connectors."""
