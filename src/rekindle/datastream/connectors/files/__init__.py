"""The file source and the file sink. PyFlink's names are in `rekindle.datastream.connectors.file_system`.

Reading: `source` (the source and its reader) uses `listing` (finds files), `watch` (finds new files), `splits` and
a format: `formats` and `csv_format` and `json_format` over `lines` and `streams`, `columnar` for Parquet and Arrow.
Writing: `sink` (the sink and its writer) uses `buckets`, `rolling`, `names`, `parts` (files in progress), `bulk`
(Parquet and Arrow), `compaction` (which files become one) and `commit` with `compacting_commit` (the committer,
which also removes unfinished files of older attempts). `streaming_file_sink` is the older spelling of the sink.
"""

from __future__ import annotations
