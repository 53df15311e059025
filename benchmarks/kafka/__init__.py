"""Kafka in and out: a topic of JSON records is decoded and counted by key, and the counts go back to Kafka."""
