"""State inside a slot, in layers: typed handle, key-group rows, changes, format (docs/architecture.md)."""
