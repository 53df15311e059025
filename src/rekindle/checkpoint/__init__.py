"""What is on disk: where it lies, what it says, which of it counts, who may change it (docs/architecture.md).

- `store`: the port with four verbs (I15), `stores/` its forms; `paths`: the one owner of the layout (I14)
- `manifest`: `_metadata`; `statefile`: state as parts of few large files; `deltas`: what the next checkpoint keeps
- `ownership`: which driver may publish and delete; `publish`: both of these, fenced
- `beginnings`: what a run began from; `stops`: the savepoint that it was stopped with; both are `notes`
- `lineage`: which checkpoint is the latest; `resolve`: found, read and verified; `retention`: what may go
- `rescale`: who gets what at another parallelism; `restore`: one subtask's state, read and verified
"""
