"""What the demo needs to run the order system, break it, and show what happens."""
