"""What the REST API costs a job: processor time of its threads, and latency of epochs with and without clients.

python -m benchmarks.rest_cost [--minutes 6] [--seconds 30]

One job runs on Spark. In every second phase clients ask as pages and scrapers do: three pages that listen to events,
a dashboard that asks for jobs, details, checkpoints and back-pressure every three seconds, a Prometheus every five. The
phases alternate, so that both kinds see the same machine. The processor time of the server's threads, and of the
threads that it uses for slow answers, is compared with that of the whole job: driver, JVM, workers and slots.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import threading
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from benchmarks.checkpoint_cost import cpu_seconds
from rekindle.common import Configuration, Types, WatermarkStrategy
from rekindle.coordinator.job_events import EpochCounted, JobEvent
from rekindle.coordinator.observer import JobObserver
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from rekindle.spark import launcher

_DASHBOARD_S, _SCRAPE_S = 3.0, 5.0
_PAGES = 3


@dataclass
class Phase:
    """The epochs of one kind of phase."""

    epochs_ms: list[float] = field(default_factory=list)
    job_cpu_s: float = 0.0
    rest_cpu_s: float = 0.0


class Epochs(JobObserver):
    """Notes the duration of each epoch in the current phase."""

    def __init__(self) -> None:
        self.into: list[float] | None = None

    def on_event(self, event: JobEvent) -> None:
        if isinstance(event, EpochCounted) and self.into is not None:
            self.into.append(event.summary.duration_ms)


class Clients:
    """Pages, a dashboard and a scraper, in threads of their own; their processor time counts for nobody."""

    def __init__(self, address: str, job_id: str) -> None:
        self._place, self._job = urlsplit(address), f"/v1/jobs/{job_id}"
        self._stopped = threading.Event()
        vertex = json.loads(get(self._connection(), self._job))["vertices"][0]["id"]
        asked = [
            *("/v1/overview", "/v1/jobs/overview", self._job, f"{self._job}/checkpoints", f"{self._job}/exceptions"),
            f"{self._job}/vertices/{vertex}/backpressure",
        ]
        targets = [(self._ask_again, (asked, _DASHBOARD_S)), (self._ask_again, (["/metrics"], _SCRAPE_S))]
        targets += [(self._listen, ())] * _PAGES
        self.threads = [threading.Thread(target=run, args=arguments, daemon=True) for run, arguments in targets]
        for thread in self.threads:
            thread.start()

    def cpu_seconds(self) -> float:
        """The processor time of the clients' threads so far."""
        return sum(thread_seconds(each) for each in self.threads if each.is_alive())

    def stop(self) -> None:
        """Ask no more."""
        self._stopped.set()
        for thread in self.threads:
            thread.join()

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self._place.hostname or "", self._place.port, timeout=60)

    def _ask_again(self, paths: list[str], pause_s: float) -> None:
        connection = self._connection()  # kept open, as browsers and scrapers do
        while not self._stopped.wait(pause_s):
            for path in paths:
                get(connection, path)

    def _listen(self) -> None:
        connection = self._connection()
        connection.request("GET", "/v1/events")
        events = connection.getresponse()
        while not self._stopped.is_set():
            events.readline()


def get(connection: http.client.HTTPConnection, path: str) -> bytes:
    """Ask for a path; returns the answer's body."""
    connection.request("GET", path)
    return connection.getresponse().read()


def thread_seconds(thread: threading.Thread) -> float:
    """The processor time of a living thread."""
    assert thread.ident is not None
    return time.clock_gettime(time.pthread_getcpuclockid(thread.ident))


def rest_threads() -> list[threading.Thread]:
    """The server's thread, and those that it starts for answers that may wait."""
    return [each for each in threading.enumerate() if each.name.startswith(("rekindle-rest", "AnyIO worker"))]


def measure(seconds: float, phases: int) -> tuple[Phase, Phase]:
    """Run the job; returns what was measured without and with clients."""
    settings = {"rekindle.progress": "off", "rest.port": "0", "execution.checkpointing.interval": "1 s"}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings)).set_parallelism(2)
    source = DataGeneratorSource(lambda n: n, 2**62, RateLimiterStrategy.per_second(20_000))
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    counts = numbers.key_by(lambda n: n % 1000, Types.LONG()).map(lambda n: n, Types.LONG()).filter(lambda n: False)
    epochs = Epochs()
    job = launcher.launch(env._program("rest cost", counts._collect()), observer=epochs)
    without, with_clients = Phase(), Phase()
    while job.status().name != "RUNNING":
        time.sleep(0.1)
    time.sleep(seconds / 2)  # the JVM warms up
    for number in range(phases):
        phase = (without, with_clients)[number % 2]
        run_phase(phase, epochs, seconds, str(job.web_url()), str(job.job_id), asks=phase is with_clients)
    job.cancel().result()
    return without, with_clients


def run_phase(phase: Phase, epochs: Epochs, seconds: float, address: str, job_id: str, *, asks: bool) -> None:
    """Measure one phase."""
    clients = Clients(address, job_id) if asks else None
    epochs.into = phase.epochs_ms
    cpu_s = cpu_seconds()
    rest_s = sum(map(thread_seconds, rest_threads()))
    time.sleep(seconds)
    epochs.into = None
    own_s = clients.cpu_seconds() if clients is not None else 0.0
    phase.job_cpu_s += cpu_seconds() - cpu_s - own_s
    phase.rest_cpu_s += sum(map(thread_seconds, rest_threads())) - rest_s
    if clients is not None:
        clients.stop()


def described(name: str, phase: Phase) -> str:
    """A phase as a line."""
    ordered = sorted(phase.epochs_ms)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    share = phase.rest_cpu_s / phase.job_cpu_s
    return (
        f"{name:16} {len(ordered):6} epochs, median {statistics.median(ordered):6.1f} ms, p99 {p99:6.1f} ms; "
        f"REST threads {phase.rest_cpu_s:6.3f} s of {phase.job_cpu_s:6.1f} s: {share:.2%}"
    )


def main() -> None:
    """Run, and print one line per kind of phase."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=6.0, help="the length of the measurement")
    parser.add_argument("--seconds", type=float, default=30.0, help="the length of a phase")
    arguments = parser.parse_args()
    phases = max(2, round(arguments.minutes * 60 / arguments.seconds))
    without, with_clients = measure(arguments.seconds, phases)
    print(described("nobody looks", without))
    print(described("five clients", with_clients))


if __name__ == "__main__":
    main()
