"""Keyed state beyond memory: RocksDB as scratch space on the local disk, behind a bounded cache of decoded rows.

- `scratch_database`: the database of a slot, shared by its operators; `memory_shares`: how the slot's budget is divided
- `entry_keys`: where an entry lies; `element_codecs`: values as single elements of a part's columns
- `row_cache`: decoded rows of keys seen lately; `rocks_backend`: the backend; `rocks_maps`, `rocks_lists`: entries of
  their own for maps and lists
- `delta_log`: changes since the last completed snapshot; `whole_capture`: key groups read from the database
- `stored_states`: a state in the database; `part_loading`: restored parts go there, key group by key group
"""
