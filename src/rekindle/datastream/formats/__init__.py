"""Schemas for messages in JSON, CSV and Avro: one module per format, as in PyFlink."""
