"""``python -m benchmarks.kafka``: Kafka to a keyed count, and back to Kafka, beside bare loops and other engines."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Callable, Sequence

from rich.markup import escape

from benchmarks.kafka.contenders import Contender, Failure, Run, bare, engines, rekindle, to_kafka
from benchmarks.kafka.runs import Runner
from benchmarks.kafka.table import LEAST_OF_AT_LEAST_ONCE, LEAST_OF_BARE, compared, runs_of, table
from benchmarks.kafka.workload import DECODERS
from benchmarks.keyed_count.display import print_targets, wide_console
from benchmarks.keyed_count.targets import Target
from tools.servers.kafka import KafkaBroker

QUICK_RECORDS = 2_000_000
QUIET_LOAD = 0.5
#: A broker of its own for the whole session; unlike the tests' brokers it lives long enough for the better compiler.
BROKER_OPTIONS = ("-XX:TieredStopAtLevel=4",)


def options_from(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kafka", description=__doc__)
    parser.add_argument("--records", type=int, default=8_000_000, help="records in the topic (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="rounds; other engines run once (default: %(default)s)")
    parser.add_argument("--decoder", nargs="+", choices=DECODERS, default=list(DECODERS))
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="only engines whose name has such a word, or 'none'"
    )
    parser.add_argument("--quick", action="store_true", help="few records, one run each: shows that it works")
    options = parser.parse_args(arguments)
    if options.quick:
        options.records, options.runs = min(options.records, QUICK_RECORDS), 1
    return options


def turns(decoder: str, runs: int, only: Sequence[str]) -> list[Contender]:
    """Rekindle before, between and after the others.

    >>> [each.family for each in turns("json", 1, ["none"])]
    ['rekindle', 'bare', 'rekindle']
    """
    own = rekindle(decoder)
    chosen = [each for each in engines(decoder) if not only or any(word.lower() in each.name.lower() for word in only)]
    order = [own]
    for number in range(runs):
        for other in [bare(decoder), *(chosen if number == 0 else ())]:
            order += [other, own]
    return order


def sink_turns(runs: int) -> list[Contender]:
    """At least once, exactly once, at least once, …"""
    first, second = to_kafka("at-least-once"), to_kafka("exactly-once")
    return [first, *(each for _ in range(runs) for each in (second, first))]


def outcome_line(outcome: Run | Failure) -> str:
    head = f"{outcome.contender.decoder:<8} {outcome.contender.name:<36}"
    if isinstance(outcome, Failure):
        return f"{head} {outcome.reason}"
    return (
        f"{head} {outcome.records_per_second:>10,.0f} records/s {outcome.processor_us:>8.2f} µs of processor time"
        f"   ({outcome.records:,} in {outcome.seconds:.1f} s, load {outcome.load:.1f})"
    )


def measure(
    order: Sequence[Contender], run: Callable[[Contender], Run | Failure], said: Callable[[Run | Failure], None]
) -> list[Run | Failure]:
    """Run all in order; who has failed is not asked again."""
    log: list[Run | Failure] = []
    for contender in order:
        if any(isinstance(each, Failure) and each.contender == contender for each in log):
            continue
        log.append(run(contender))
        said(log[-1])
    return log


def targets(log: Sequence[Run | Failure], decoders: Sequence[str]) -> list[Target]:
    """The promises, from this session's runs."""
    result = []
    for decoder in decoders:
        own = rekindle(decoder)
        promise = f"≥ {LEAST_OF_BARE:.0%} of the bare loops, {decoder}"
        result.append(compared(log, promise, LEAST_OF_BARE, own, bare(decoder)))
        for engine in engines(decoder):
            if runs_of(log, engine):
                result.append(compared(log, f"ahead of {engine.name}, {decoder}", 1, own, engine))
    promise = f"exactly once ≥ {LEAST_OF_AT_LEAST_ONCE:.0%} of at least once"
    once, least = to_kafka("exactly-once"), to_kafka("at-least-once")
    return [*result, compared(log, promise, LEAST_OF_AT_LEAST_ONCE, once, least)]


def main() -> None:
    options = options_from()
    console = wide_console()
    load = ", ".join(f"{average:.1f}" for average in os.getloadavg())
    console.print(f"{os.cpu_count()} cores, Python {platform.python_version()}, load average {load}")
    if os.getloadavg()[0] > QUIET_LOAD:
        console.print("[yellow]The machine is busy: compare processor time, and only within this session.[/yellow]")
    order = [each for decoder in options.decoder for each in turns(decoder, options.runs, options.only)]
    with KafkaBroker(java_options=BROKER_OPTIONS) as broker:
        log = measure(
            order + sink_turns(options.runs),
            Runner(broker, options.records).run,
            lambda outcome: console.print(outcome_line(outcome), markup=False, highlight=False, soft_wrap=True),
        )
    console.print()
    console.print(table(log))
    console.print("\n[bold]Settings[/bold]")
    for contender in dict.fromkeys(each.contender for each in log if isinstance(each, Run)):
        settings = ", ".join(f"{key}={value}" for key, value in runs_of(log, contender)[0].settings.items())
        console.print(escape(f"  {contender.name}: {settings}"), soft_wrap=True)
    print_targets(console, targets(log, options.decoder))


if __name__ == "__main__":
    main()
