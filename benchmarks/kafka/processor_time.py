"""The processor time of a run: of all processes that it started, wherever they went, sampled while it runs.

The processes are found by a variable of their environment, which children inherit. The broker has none.
"""

from __future__ import annotations

import bisect
import threading
import time
import uuid
from types import TracebackType

import psutil

VARIABLE = "REKINDLE_BENCH_RUN"
_EVERY_S = 0.2


class ProcessorTime:
    """Samples the processor time of a run on a thread, inside a `with` block."""

    def __init__(self) -> None:
        self.mark = uuid.uuid4().hex
        self._seen: dict[tuple[int, float], float] = {}
        self._ours: dict[tuple[int, float], bool] = {}
        self._samples: list[tuple[float, float]] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> ProcessorTime:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._end.set()
        self._thread.join()

    def between(self, began: float, ended: float) -> float:
        """Return the seconds of processor time that were used between two moments of `time.time()`."""
        return max(0.0, self._at(ended) - self._at(began))

    def _at(self, moment: float) -> float:
        """Interpolate between the samples right before and right after."""
        place = bisect.bisect(self._samples, (moment, 0.0))
        if place == 0 or place == len(self._samples):
            return self._samples[min(place, len(self._samples) - 1)][1]
        (before, less), (after, more) = self._samples[place - 1], self._samples[place]
        return less + (more - less) * (moment - before) / (after - before)

    def _run(self) -> None:
        while not self._end.wait(_EVERY_S):
            self._sample()

    def _sample(self) -> None:
        for process in psutil.process_iter():
            try:
                name = (process.pid, process.create_time())
                if self._is_ours(name, process):
                    used = process.cpu_times()
                    self._seen[name] = used.user + used.system
            except psutil.Error:
                continue
        self._samples.append((time.time(), sum(self._seen.values())))

    def _is_ours(self, name: tuple[int, float], process: psutil.Process) -> bool:
        """Whether the run started the process. A process may change its environment when it begins: look again."""
        if not self._ours.get(name):
            young = time.time() - name[1] < 2 or name not in self._ours
            self._ours[name] = young and process.environ().get(VARIABLE) == self.mark
        return self._ours[name]
