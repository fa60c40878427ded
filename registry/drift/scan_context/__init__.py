"""Loads what a scan is compared with from the database: topics, versions, queries, connectors."""
