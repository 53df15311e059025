"""The order system of a shop: duplicates, status, purchases per user, stock and batches, in one job."""
