"""Change events of Debezium's PostgreSQL connector: its configuration, the database's catalog and the topics together."""
