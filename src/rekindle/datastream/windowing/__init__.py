"""Windows, assigners, triggers and evictors (imported from `rekindle.datastream.window`, as in PyFlink)."""
