"""No engine: two processes, each a `confluent-kafka` loop over half of the partitions, with a dict of counts.

No state that survives, no shuffle (the keys of both processes overlap, the counts are added up at the end): what a
program could do at most.
"""

from __future__ import annotations

import json
from collections import defaultdict
from multiprocessing import get_context
from typing import Any

from benchmarks.kafka.peers.arguments import parsed
from benchmarks.kafka.workload import (
    CLIENT_SETTINGS,
    FETCH_RECORDS,
    PARTITIONS,
    Progress,
    record_decoder,
    report,
)

PROCESSES = 2


def count(bootstrap: str, topic: str, partitions: list[int], decoder: str, records: int) -> tuple[int, list[Any]]:
    """Read the partitions to their end; return the sum of all counts, and the progress."""
    from confluent_kafka import Consumer, Message, TopicPartition

    settings = {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False}
    consumer = Consumer(settings | CLIENT_SETTINGS)
    consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
    progress = Progress()
    counts: dict[str, int] = defaultdict(int)
    decode, loads = record_decoder(decoder), json.loads
    while progress.done < records:
        values = list(map(Message.value, consumer.consume(FETCH_RECORDS, 0.05)))
        if decoder == "msgspec":
            for value in values:
                record = decode(value)
                counts[record.key] += record.amount
        else:
            for value in values:
                as_dict = loads(value)
                counts[as_dict["key"]] += as_dict["amount"]
        progress.add(len(values))
    progress.note()
    consumer.close()
    return sum(counts.values()), progress.marks


def main() -> None:
    """Do one run and print one JSON line."""
    options = parsed(__doc__)
    shares = [list(range(number, PARTITIONS, PROCESSES)) for number in range(PROCESSES)]
    jobs = [
        (options.bootstrap, options.topic, share, options.decoder, options.records // PROCESSES) for share in shares
    ]
    with get_context("spawn").Pool(PROCESSES) as pool:
        results = pool.starmap(count, jobs, chunksize=1)
    settings = {"processes": PROCESSES, "decoder": options.decoder, "consume": FETCH_RECORDS, **CLIENT_SETTINGS}
    report("bare", [marks for _, marks in results], sum(done for done, _ in results), options.records, settings)


if __name__ == "__main__":
    main()
