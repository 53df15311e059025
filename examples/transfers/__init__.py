"""Money moves between accounts, processes are killed meanwhile, and not a cent is lost: see `__main__.py`."""
