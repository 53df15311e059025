"""Window operators: a general one for every assigner, trigger and evictor, and two fast ones.

The state of a window lies under (key, namespace); the namespace is the window as plain data. State that all windows of
a key share lies under (key, None). Fast and general operators write the same state: one can restore the other's.
"""
