"""Change events of Debezium's PostgreSQL connector: compares its configuration, the database's catalog and the topics."""
