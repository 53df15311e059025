"""Checkpoints and savepoints outside a job: their state as rows, and new savepoints made of rows. No Spark in here.

- `find_snapshot`: the checkpoint that a user names; `shapes`: the types of columns; `fingerprint_parser`, `settle`:
  where these come from; `column_values`: between stored values and values of columns
- `keyed_rows`, `timer_rows`, `operator_rows`, `overview_rows`: the rows of a checkpoint; `tables`: all of them by name
- `cells`, `group_parts`: rows as parts of keyed state; `savepoint_draft`: the savepoint that they become
"""
