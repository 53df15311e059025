"""The parts of the order benchmark: events, expected tallies, sinks, turns and targets."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from benchmarks.keyed_count.contenders import Failure, Run
from benchmarks.keyed_count.turns import Line, take_turns
from benchmarks.orders.__main__ import OrderContender, chosen, contenders, options_from, ratio_of, target
from benchmarks.orders.engine import CountingSink, PreparedOrders
from benchmarks.orders.prepare import expected_tallies, first_events
from benchmarks.orders.workload import DIGESTS, added, as_tallies, differences, events_path, read_events, share_of
from examples.orders.job import connect, order_events
from examples.orders.settings import Feed, Settings
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.graph.build import build_plan
from rekindle.testing.in_process import InProcessJob

LIVELY = Feed(users=15, products=12, orders_per_hour=200, duplicates=0.15, out_of_order=0.4, misfits=0.1)
SHORT = Settings(initial_stock=40)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    events = first_events(LIVELY, SHORT, 1500)
    with events_path(tmp_path).open("wb") as file:
        for block in (events[:1000], events[1000:]):
            pickle.dump(block, file)
    return tmp_path


def test_every_event_is_in_one_share_with_all_others_of_its_order(folder: Path) -> None:
    everything = list(read_events(folder))
    shares = [list(read_events(folder, share, 3)) for share in range(3)]
    assert sorted(event for share in shares for event in share) == sorted(everything)
    assert [event for event in everything if share_of(event[0], 3) == 1] == shares[1]


def test_the_job_with_counting_sinks_gives_what_the_model_says(folder: Path, tmp_path: Path) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    results = tmp_path / "results"
    results.mkdir()
    source = PreparedOrders(folder)
    connect(order_events(env, SHORT, source), SHORT, lambda stream: CountingSink(stream, str(results)))
    InProcessJob(build_plan(env._program("orders")), max_records=200).run()
    found = added(as_tallies(json.loads(path.read_text())) for path in results.glob("*.json"))
    wanted = expected_tallies(list(read_events(folder)), SHORT)
    assert differences(found, wanted) == []
    assert all(wanted[stream][0] > 0 for stream in DIGESTS if stream != "late-purchases"), wanted


def test_a_row_too_few_and_a_sum_that_differs_are_named() -> None:
    wanted = added([{"stock": (2, 7), "dropped": (1, 5)}])
    assert differences(added([{"stock": (2, 8), "dropped": (0, 0)}]), wanted) == [
        "dropped has 0 rows that add up to 0, not 1 that add up to 5",
        "stock has 2 rows that add up to 8, not 2 that add up to 7",
    ]
    assert differences(added([{"stock": (2, 7), "dropped": (1, None)}]), wanted) == []


def _run(contender: OrderContender, rate: float) -> Run:
    return Run(contender, 0, 100, 100 / rate, rate, {})


def test_a_ratio_is_taken_against_the_runs_right_before_and_right_after() -> None:
    rekindle, peers = contenders(1000, 0)
    rates = iter([100.0, 10.0, 300.0, 20.0, 500.0])
    said: list[Run | Failure] = []
    engine, lines = take_turns(rekindle, peers[:2], lambda contender: _run(contender, next(rates)), said.append)
    assert [run.records_per_second for run in engine] == [100, 300, 500]
    assert [line.ratio for line in lines] == [20.0, 20.0]
    assert [outcome.contender.name for outcome in said][1::2] == [peer.name for peer in peers[:2]]


def test_a_target_is_measured_against_the_quickest_form_of_a_peer() -> None:
    _, (process, thread, rows, pandas) = contenders(1000, 0)
    lines = [Line(_run(process, 1), 25.0), Line(_run(thread, 1), 40.0), Line(_run(rows, 1), 9.0)]
    lines.append(Line(Failure(pandas, 0, "it failed"), None))
    assert target("pyflink", lines).reached is True
    assert target("spark", lines).reached is False
    assert target("spark", lines[:2]).reached is None
    assert ratio_of([*lines, Line(_run(process, 1), 35.0)], process.name) == 30


def test_quick_is_a_tenth_of_the_events_and_the_slow_get_a_tenth_of_those() -> None:
    assert options_from([]).events == 1_000_000
    assert options_from(["--quick"]).events == 100_000
    assert [peer.records_few_keys for peer in contenders(1000, 0)[1]] == [100, 1000, 1000, 1000]
    assert {peer.records_few_keys for peer in contenders(1000, 0, all_events=True)[1]} == {1000}


def test_the_form_over_frames_runs_only_when_it_is_named() -> None:
    _, peers = contenders(1000, 0)
    assert [peer.name for peer in chosen(peers, [])] == [peer.name for peer in peers[:3]]
    assert [peer.name for peer in chosen(peers, ["pandas"])] == ["Spark, transformWithStateInPandas"]
