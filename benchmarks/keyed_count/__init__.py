"""A keyed count on every engine: read, add one and write one value of state for each record."""
