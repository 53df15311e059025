"""Files as source and sink. PyFlink's names are in `rekindle.datastream.connectors.file_system`.

Reading: `source` (the source and its reader) over `listing`, `watch` (which files are new), `splits`, and formats:
`lines` and `streams` below `formats` and `csv_format`, `columnar` for Parquet and Arrow.
Writing: `sink` (the sink and its writer) over `buckets`, `rolling`, `names`, `parts` (files in progress), `bulk`, and
`commit` (the committer, and the sweep of what older attempts left).
"""

from __future__ import annotations
