"""What Spark reads: Kafka topics and state stores."""
