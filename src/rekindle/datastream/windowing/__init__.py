"""Windows, assigners, triggers and evictors. Users import them from `rekindle.datastream.window`, as in PyFlink."""
