"""Recovery times of the order system with 100 MB of state: from each fault to the first new record."""
