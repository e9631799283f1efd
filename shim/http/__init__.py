"""A small HTTP server in threads, for what people and monitors look at. It knows nothing of Kafka."""
