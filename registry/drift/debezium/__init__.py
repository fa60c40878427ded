"""Change events of Debezium's PostgreSQL connector: compares its configuration, the catalog and the topics."""
