"""Checkpoints and savepoints outside a job: their state as rows, and new savepoints made of rows. No Spark in here.

- `find_snapshot`: the checkpoint that a user names; `tables`: what can be read of it, by name; `table`: the port
- `keyed_table` over `keyed_rows`, `timer_table`, `operator_tables`, `overview_tables`: the tables
- `changed_keys`: what differs between two checkpoints
- `shapes`: the types of columns; `stored_types`, `settle`: where they come from
- `stored_state`: the states of an operator; `state_columns`, `key_columns`, `column_values`: how they are shown
- `stored_values`, `row_encoder`, `cells`, `group_parts`, `operator_lists`: rows as state of a new savepoint
"""
