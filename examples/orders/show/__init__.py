"""Parts of the demo: the order system as a process, its faults, and the screens."""
