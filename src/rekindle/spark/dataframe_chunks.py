"""Encodes a DataFrame's partitions as chunks, in Spark's own tasks, so that rows enter with the first stage (I10)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from rekindle.common.typeinfo import TypeInformation
from rekindle.graph.nodes import JobPlan
from rekindle.runtime.exchange.chunk import END, Mark, encode_body, encode_chunk
from rekindle.serde import codec_for


@dataclass(frozen=True)
class _Target:
    """An edge that leaves the DataFrame source, and the slot of each subtask behind it."""

    edge: int
    slots: tuple[int, ...]


@dataclass(frozen=True)
class DataFrameChunks:
    """Encoder of partitions: partition p is channel p; its rows go to subtask p modulo parallelism, its end to all."""

    type_info: TypeInformation | None
    chunk_records: int
    targets: tuple[_Target, ...]

    @staticmethod
    def of(plan: JobPlan, node: int) -> DataFrameChunks:
        """The encoder for a DataFrame source of the plan."""
        targets = []
        for edge in plan.edges:
            if edge.source == node:
                chain = plan.chain_of(edge.target)
                slots = tuple(plan.placement[chain.id, subtask] for subtask in range(chain.parallelism))
                targets.append(_Target(edge.id, slots))
        return DataFrameChunks(plan.nodes[node].output_type, plan.settings.exchange.chunk_records, tuple(targets))

    def __call__(self, partition: int, rows: Iterator[Any]) -> Iterator[tuple[int, bytes]]:
        """(slot, encoded chunk) for every chunk of a partition."""
        codec, sequence = codec_for(self.type_info), 0
        while records := list(islice(rows, self.chunk_records)):
            body = encode_body(records, None, [], codec)
            for target in self.targets:
                subtask = partition % len(target.slots)
                yield target.slots[subtask], encode_chunk(target.edge, partition, subtask, sequence, body)
            sequence += 1
        end = encode_body([], None, [Mark(0, END, 0)], codec)
        for target in self.targets:
            for subtask, slot in enumerate(target.slots):
                place = sequence if subtask == partition % len(target.slots) else 0
                yield slot, encode_chunk(target.edge, partition, subtask, place, end)
