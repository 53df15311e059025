"""The pipeline of `examples/kafka_to_hbase` for a test: `… PLACE(JSON) KEYED DIRECTORY PARALLELISM`."""

from __future__ import annotations

import json
import logging
import sys

from benchmarks.connector_chaos.job import environment
from examples.kafka_to_hbase.job import Place, add_pipeline

INTERVAL_MS = 300
#: Long enough for an observer to see an offset that is committed before the rows are written.
PAUSE_S = 0.2


def main(place: str, keyed: str, directory: str, parallelism: str) -> None:
    """Run the pipeline until the process is killed."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s", stream=sys.stdout)
    env = environment(directory, int(parallelism))
    env.enable_checkpointing(INTERVAL_MS)
    add_pipeline(env, Place(**json.loads(place)), keyed=keyed == "keyed", pause_s=PAUSE_S)
    env.execute("kafka to hbase")


if __name__ == "__main__":
    main(*sys.argv[1:])
