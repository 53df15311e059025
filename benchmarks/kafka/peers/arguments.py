"""The arguments that every side takes."""

from __future__ import annotations

import argparse

from benchmarks.kafka.workload import DECODERS


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser of the broker's address, the topic, its number of records, and the decoder."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--bootstrap", required=True)
    made.add_argument("--topic", required=True)
    made.add_argument("--records", type=int, required=True)
    made.add_argument("--decoder", choices=DECODERS, default="msgspec")
    return made


def parsed(description: str | None) -> argparse.Namespace:
    """Parse the arguments that every side takes."""
    return parser(description).parse_args()
