"""The slots of a job's current attempt: their processes, memory and last lines of output; bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from rekindle.monitor.job_view import LogLineView, SlotView
from rekindle.protocol import LogLine, SlotHeartbeat, SlotHello

#: The lines that are kept of all slots together, of a slot at most and at least, and the characters of a line.
_ALL_LINES, _MOST_LINES, _LEAST_LINES = 5_000, 500, 50
_CHARACTERS = 2_000


@dataclass
class _Slot:
    hello: SlotHello
    started_ms: int
    last_heartbeat_ms: int
    log: deque[LogLineView]
    memory_bytes: int = 0
    cpu_s: float = 0.0


class SlotBook:
    """The last reports of the slots. Not thread-safe."""

    def __init__(self, slots: int) -> None:
        self._lines = min(_MOST_LINES, max(_LEAST_LINES, _ALL_LINES // max(1, slots)))
        self._slots: dict[int, _Slot] = {}
        #: Reports of slots of a new attempt, from the time before all of them were connected.
        self._early: dict[int, deque[LogLineView]] = {}
        self._early_beats: dict[int, SlotHeartbeat] = {}

    def connected(self, hellos: Sequence[SlotHello], now_ms: int) -> None:
        """The slots of a new attempt have connected."""
        self._slots = {each.slot: _Slot(each, now_ms, now_ms, deque(maxlen=self._lines)) for each in hellos}
        for slot, lines in self._early.items():
            if slot in self._slots:
                self._slots[slot].log.extend(lines)
        for slot, beat in self._early_beats.items():
            self.heartbeat(slot, beat, now_ms)
        self._early, self._early_beats = {}, {}

    def begin(self) -> None:
        """An attempt begins: its slots are yet to come."""
        self._slots = {}

    def heartbeat(self, slot: int, heartbeat: SlotHeartbeat, now_ms: int) -> None:
        """A slot is alive."""
        if (known := self._slots.get(slot)) is not None:
            known.last_heartbeat_ms = now_ms
            known.memory_bytes, known.cpu_s = heartbeat.memory_bytes, heartbeat.cpu_s
        else:
            self._early_beats[slot] = heartbeat

    def line(self, slot: int, line: LogLine, now_ms: int) -> None:
        """A slot has printed or logged."""
        text = line.text if len(line.text) <= _CHARACTERS else line.text[:_CHARACTERS] + "…"
        view = LogLineView(at_ms=now_ms, stream=line.stream, source=line.source, text=text, level=line.level)
        known = self._slots.get(slot)
        log = known.log if known is not None else self._early.setdefault(slot, deque(maxlen=self._lines))
        log.append(view)

    def id_of(self, slot: int) -> tuple[str, str] | None:
        """The id and the host of a slot; None: it has not connected."""
        known = self._slots.get(slot)
        return None if known is None else (_id(known.hello), known.hello.host)

    def views(self, log_lines: int) -> list[SlotView]:
        """The slots as data, each with its last lines."""
        return [
            SlotView(
                index=index,
                id=_id(each.hello),
                host=each.hello.host,
                pid=each.hello.pid,
                started_ms=each.started_ms,
                last_heartbeat_ms=each.last_heartbeat_ms,
                memory_bytes=each.memory_bytes,
                cpu_s=each.cpu_s,
                log=list(each.log)[-log_lines:] if log_lines else [],
            )
            for index, each in sorted(self._slots.items())
        ]


def _id(hello: SlotHello) -> str:
    """Flink's task managers have ids of this form: host, port and a suffix."""
    return f"{hello.host}:{hello.pid}-{hello.job_id[:6]}-{hello.attempt}-{hello.slot}"
