"""State in a slot, in layers: typed handle, time to live, rows by key group, changes, format (docs/architecture.md)."""
