"""Classes of the user's script are pickled by value, with all their parts, for another process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
from __future__ import annotations
import enum, sys
from dataclasses import dataclass
from typing import NamedTuple, Optional
import msgspec
from rekindle.common.typeinfo import Types, infer_type_info
from rekindle.serde import cloud_dumps, codec_for

@dataclass
class Item:
    sku: str
    note: Optional[str] = None

@dataclass(frozen=True, slots=True)
class Order:
    id: int
    items: list[Item]

class Event(msgspec.Struct, frozen=True, rename="camel", tag=True):
    event_id: int
    order: Optional[Order] = None
    kids: list[Event] = []
    def twice(self):
        return self.event_id * 2

class Special(Event, kw_only=True, frozen=True):
    level: Level

class Pair(NamedTuple):
    a: int
    order: Order

class Level(enum.Enum):
    LOW = "low"

records = [
    Order(1, [Item("a")]),
    Event(1, Order(2, []), [Event(3)]),
    Special(4, level=Level.LOW),
    Pair(5, Order(6, [])),
    Level.LOW,
]
infos = [infer_type_info(type(record)) for record in records]
chunks = [codec_for(info).encode([record]) for info, record in zip(infos, records)]
assert all(info.python_type() is not None for info in infos)
sys.stdout.buffer.write(cloud_dumps((infos, chunks, records, lambda event: event.twice())))
"""

READER = """
import pickle, sys
from rekindle.serde import cloud_dumps, codec_for
data = sys.stdin.buffer.read()
infos, chunks, records, twice = pickle.loads(data)
for info, chunk, record in zip(infos, chunks, records):
    [again] = codec_for(info).decode(chunk)
    assert again == record and type(again) is type(record), (again, record)
assert twice(records[1]) == 2
assert type(pickle.loads(data)[2][1]) is type(records[1])
assert type(pickle.loads(cloud_dumps(records[2]))) is type(records[2])
print(records)
"""


def run(code: str, path: Path, data: bytes = b"") -> bytes:
    script = path / "script.py"
    script.write_text(code)
    source = str(Path(sys.modules["rekindle.serde"].__file__ or "").parents[2])
    done = subprocess.run(
        [sys.executable, str(script)],
        input=data,
        capture_output=True,
        check=False,
        timeout=60,
        env={"PYTHONPATH": source},
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def test_types_functions_and_values_of_a_script_work_in_another_process(tmp_path: Path) -> None:
    import rekindle.serde  # noqa: F401

    seen = run(READER, tmp_path, run(PROGRAM, tmp_path)).decode()
    assert "Special(" in seen
    assert "Item(sku='a', note=None)" in seen
