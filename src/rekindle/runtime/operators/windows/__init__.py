"""Windows at run time: one general operator for every assigner, trigger and evictor, and two fast ones.

State of a window lies under (key, namespace): the namespace is the window as plain data. Under (key, None) lies what
all windows of a key share. Fast and general operators write the same state: one can take over from the other.
"""
