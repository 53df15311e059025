"""The environment: settings, programs, and launching them (with a fake launcher)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rekindle.common import Configuration, JobExecutionResult, JobID, JobStatus, RestartStrategies, Types
from rekindle.datastream import (
    HashMapStateBackend,
    MapFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    SlotSharingGroup,
    SourceFunction,
    StreamExecutionEnvironment,
    find_launcher,
)
from rekindle.datastream.functions import PrintSinkFunction
from rekindle.datastream.transformations import Program
from rekindle.datastream.vocabulary import OperatorKind
from rekindle.errors import GraphError, JobExecutionError


class FakeJob:
    """A job handle that tests control."""

    def __init__(self, batches: list[list[Any]], error: BaseException | None = None) -> None:
        self.job_id = JobID()
        self.cancelled = False
        self._batches = batches
        self._future: Future[JobExecutionResult] = Future()
        if error is not None:
            self._future.set_exception(error)
        else:
            self._future.set_result(JobExecutionResult(self.job_id, 5, {}))

    def status(self) -> JobStatus:
        return JobStatus.FINISHED

    def cancel(self) -> Future[None]:
        self.cancelled = True
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def result(self) -> Future[JobExecutionResult]:
        return self._future

    def accumulators(self) -> dict[str, Any]:
        return {}

    def results(self) -> Iterator[list[Any]]:
        return iter(self._batches)


class FakeEngine:
    """A fake launcher module that remembers its arguments."""

    def __init__(self) -> None:
        self.programs: list[Program] = []
        self.job = FakeJob([[1, 2], [], [3]])

    def launch(self, program: Program) -> FakeJob:
        self.programs.append(program)
        return self.job

    def plan_json(self, program: Program) -> str:
        self.programs.append(program)
        return "{}"

    def explain(self, program: Program) -> str:
        self.programs.append(program)
        return "a plan"

    def to_dataframe(self, program: Program) -> Any:
        self.programs.append(program)
        return "a frame"

    def dataframe_type(self, df: Any) -> Any:
        return Types.ROW_NAMED(["n"], [Types.LONG()])


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    fake = FakeEngine()
    monkeypatch.setattr(find_launcher, "load_launcher", lambda: fake)
    return fake


# -- running ----------------------------------------------------------------------------------------------------------


def test_execute_hands_over_the_program_and_begins_a_new_one(
    env: StreamExecutionEnvironment, engine: FakeEngine
) -> None:
    env.set_parallelism(3).from_collection([1]).print()
    result = env.execute("my job")
    assert result.get_job_id() == engine.job.job_id
    program = engine.programs[0]
    assert (program.job_name, program.parallelism, len(program.transformations)) == ("my job", 3, 2)
    env.from_collection([1]).print()
    env.execute()
    assert len(engine.programs[1].transformations) == 2


def test_a_program_that_could_not_be_launched_is_kept(env: StreamExecutionEnvironment, engine: FakeEngine) -> None:
    def refuse(program: Program) -> FakeJob:
        raise GraphError("no")

    engine.launch = refuse  # type: ignore[method-assign]
    env.from_collection([1]).print()
    with pytest.raises(GraphError):
        env.execute()
    assert len(env._program(None).transformations) == 2


def test_the_job_name_comes_from_the_call_then_the_configuration(
    env: StreamExecutionEnvironment, engine: FakeEngine
) -> None:
    assert env._program(None).job_name == "Rekindle Streaming Job"
    env.configure(Configuration.from_dict({"pipeline.name": "configured"}))
    assert env._program(None).job_name == "configured"
    assert env._program("given").job_name == "given"


def test_an_error_of_the_job_is_raised(env: StreamExecutionEnvironment, engine: FakeEngine) -> None:
    engine.job = FakeJob([], JobExecutionError("boom"))
    env.from_collection([1]).print()
    with pytest.raises(JobExecutionError, match="boom"):
        env.execute()


def test_ctrl_c_cancels_the_job_and_is_raised_again(env: StreamExecutionEnvironment, engine: FakeEngine) -> None:
    engine.job = FakeJob([], KeyboardInterrupt())
    env.from_collection([1]).print()
    with pytest.raises(KeyboardInterrupt):
        env.execute()
    assert engine.job.cancelled


def test_a_job_that_does_not_end_after_ctrl_c_is_given_up(
    env: StreamExecutionEnvironment, engine: FakeEngine, caplog: pytest.LogCaptureFixture
) -> None:
    engine.job = FakeJob([], KeyboardInterrupt())
    engine.job.cancel = lambda: Future()  # type: ignore[method-assign]
    env.get_config().set_task_cancellation_timeout(1)
    env.from_collection([1]).print()
    with caplog.at_level(logging.WARNING), pytest.raises(KeyboardInterrupt):
        env.execute()
    assert "did not end within 1 ms" in caplog.text


def test_execute_async_gives_a_client(env: StreamExecutionEnvironment, engine: FakeEngine) -> None:
    env.from_collection([1]).print()
    client = env.execute_async("later")
    assert client.get_job_id() == engine.job.job_id
    assert client.get_job_status().result() is JobStatus.FINISHED
    assert engine.programs[0].job_name == "later"


def test_plans_do_not_use_up_the_program(env: StreamExecutionEnvironment, engine: FakeEngine) -> None:
    env.from_collection([1]).print()
    assert (env.explain(), env.get_execution_plan()) == ("a plan", "{}")
    assert [len(program.transformations) for program in engine.programs] == [2, 2]


# -- collecting -------------------------------------------------------------------------------------------------------


def test_results_come_one_by_one(env: StreamExecutionEnvironment, engine: FakeEngine) -> None:
    with env.from_collection([1], int).map(str, output_type=str).execute_and_collect("collected") as results:
        assert list(results) == [1, 2, 3]
    collect = engine.programs[0].transformations[-1]
    assert (collect.kind, collect.output_type) == (OperatorKind.COLLECT, Types.STRING())
    assert not engine.job.cancelled


def test_closing_before_the_end_cancels(env: StreamExecutionEnvironment, engine: FakeEngine) -> None:
    results = env.from_collection([1]).execute_and_collect()
    assert results.next() == 1
    results.close()
    assert engine.job.cancelled
    with pytest.raises(StopIteration):
        results.next()


def test_a_limit_gives_a_list_and_cancels_the_rest(env: StreamExecutionEnvironment, engine: FakeEngine) -> None:
    assert env.from_collection([1]).execute_and_collect(limit=2) == [1, 2]
    assert engine.job.cancelled


def test_a_limit_above_the_number_of_results_gives_all(env: StreamExecutionEnvironment, engine: FakeEngine) -> None:
    assert env.from_collection([1]).execute_and_collect(limit=10) == [1, 2, 3]


def test_a_failed_job_raises_at_the_end_of_its_results(env: StreamExecutionEnvironment, engine: FakeEngine) -> None:
    engine.job = FakeJob([[1]], JobExecutionError("boom"))
    results = env.from_collection([1]).execute_and_collect()
    assert results.next() == 1
    with pytest.raises(JobExecutionError, match="boom"):
        results.next()


@pytest.mark.parametrize("limit", [0, -1, "3"])
def test_a_limit_is_one_or_more(env: StreamExecutionEnvironment, limit: Any) -> None:
    with pytest.raises(GraphError, match="limit of 1 or more"):
        env.from_collection([1]).execute_and_collect(limit=limit)


class Endless(SourceFunction):
    def run(self, ctx: Any) -> None:
        return None

    def cancel(self) -> None:
        return None


def test_to_dataframe_needs_bounded_sources(env: StreamExecutionEnvironment, engine: FakeEngine) -> None:
    assert env.from_collection([1]).map(str).to_dataframe("frame") == "a frame"
    with pytest.raises(GraphError, match="'ticks' may never end"):
        env.add_source(Endless(), "ticks").map(str).to_dataframe()


def test_from_dataframe_keeps_the_frame_and_its_type(env: StreamExecutionEnvironment, engine: FakeEngine) -> None:
    frame = object()
    stream = env.from_dataframe(frame)
    assert stream.get_type() == Types.ROW_NAMED(["n"], [Types.LONG()])
    assert env.from_dataframe(frame, type_info=tuple[int]).get_type() == Types.TUPLE([Types.LONG()])
    stream.print()
    program = env._program(None)
    details: Any = stream._upstreams[0].transformation.details
    assert program.dataframes[details.handle] is frame


# -- the launcher -----------------------------------------------------------------------------------------------------


def test_the_launcher_is_found_by_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def found(group: str, name: str) -> list[Any]:
        asked.append((group, name))
        return [SimpleNamespace(module="json")]

    monkeypatch.setattr(find_launcher, "entry_points", found)
    assert find_launcher.load_launcher().__name__ == "json"  # type: ignore[attr-defined]
    assert asked == [("rekindle.launcher", "spark")]


def test_without_entry_points_the_default_module_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    imported: list[str] = []
    monkeypatch.setattr(find_launcher, "entry_points", lambda group, name: [])
    monkeypatch.setattr(find_launcher.importlib, "import_module", imported.append)  # type: ignore[attr-defined]
    find_launcher.load_launcher()
    assert imported == ["rekindle.spark.launcher"]


# -- settings ---------------------------------------------------------------------------------------------------------


def test_settings_and_configuration_are_one(env: StreamExecutionEnvironment) -> None:
    env.configure(
        Configuration.from_dict(
            {
                "parallelism.default": "7",
                "pipeline.max-parallelism": "64",
                "execution.runtime-mode": "BATCH",
                "execution.checkpointing.interval": "10 s",
                "execution.buffer-timeout.interval": "20 ms",
                "pipeline.operator-chaining.enabled": "false",
            }
        )
    )
    assert (env.get_parallelism(), env.get_max_parallelism()) == (7, 64)
    assert env.get_config().get_parallelism() == 7
    assert env.get_checkpoint_interval() == 10_000
    assert (env.get_buffer_timeout(), env.is_chaining_enabled()) == (20, False)
    assert env._program(None).runtime_mode is RuntimeExecutionMode.BATCH


def test_setters_are_read_back(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    strategy = RestartStrategies.no_restart()
    env.set_runtime_mode(RuntimeExecutionMode.AUTOMATIC).set_buffer_timeout(-1).disable_operator_chaining()
    env.set_state_backend(HashMapStateBackend()).set_restart_strategy(strategy).enable_changelog_state_backend(True)
    env.set_default_savepoint_directory("file:///savepoints")
    env.set_default_local_parallelism(5)
    env.set_python_executable("python3")
    file = tmp_path / "helper.py"
    file.write_text("x = 1")
    env.add_python_file(str(file))
    assert (env.get_buffer_timeout(), env.get_parallelism()) == (-1, 5)
    assert env.get_restart_strategy() is strategy
    assert env.is_changelog_state_backend_enabled() is True
    assert env.get_default_savepoint_directory() == "file:///savepoints"
    program = env._program(None)
    assert program.parallelism is None
    assert program.default_local_parallelism == 5
    assert program.configuration.get_string("python.files", "") == str(file)
    assert program.restart_strategy is strategy


def test_a_program_is_not_changed_by_later_settings(env: StreamExecutionEnvironment) -> None:
    program = env.set_parallelism(2)._program(None)
    env.configure(Configuration.from_dict({"pipeline.name": "later"}))
    assert not program.configuration.contains_key("pipeline.name")


@pytest.mark.parametrize("parallelism", [0, -2, 1.5])
def test_the_environments_parallelism_is_checked(env: StreamExecutionEnvironment, parallelism: Any) -> None:
    with pytest.raises(GraphError, match="1 or more"):
        env.set_parallelism(parallelism)


@pytest.mark.parametrize("method", ["add_jars", "add_classpaths"])
def test_what_has_no_meaning_says_so(
    env: StreamExecutionEnvironment, caplog: pytest.LogCaptureFixture, method: str
) -> None:
    with caplog.at_level(logging.WARNING, logger="rekindle"):
        getattr(env, method)("file:///some.jar")
    assert f"{method}() has no effect" in caplog.text


def test_wrong_arguments_of_the_environment_are_refused(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(GraphError, match=r"there is no 'nowhere\.py'"):
        env.add_python_file("nowhere.py")
    with pytest.raises(GraphError, match="use from_source"):
        env.create_input(None)
    with pytest.raises(GraphError, match="takes a Source"):
        env.from_source(5, None, "five")  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="takes a RuntimeExecutionMode"):
        env.set_runtime_mode("BATCH")  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="takes a StateBackend"):
        env.set_state_backend("rocksdb")  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="takes a strategy of RestartStrategies"):
        env.set_restart_strategy(3)  # type: ignore[arg-type]
    env.register_slot_sharing_group(SlotSharingGroup("g"))
    with pytest.raises(GraphError, match="registered twice"):
        env.register_slot_sharing_group(SlotSharingGroup("g", cpu_cores=1.0))


def test_close_forgets_the_program(env: StreamExecutionEnvironment) -> None:
    env.from_collection([1]).print()
    env.close()
    assert env._program(None).transformations == ()


# -- print ------------------------------------------------------------------------------------------------------------


class Subtask(RuntimeContext):
    """The part of a runtime context that `print` needs."""

    def __init__(self, index: int, parallelism: int) -> None:
        self._index, self._parallelism = index, parallelism

    def get_index_of_this_subtask(self) -> int:
        return self._index

    def get_number_of_parallel_subtasks(self) -> int:
        return self._parallelism


Subtask.__abstractmethods__ = frozenset()


def subtask(index: int, parallelism: int) -> Subtask:
    return Subtask(index, parallelism)  # type: ignore[abstract]  # not any more


@pytest.mark.parametrize(
    ("identifier", "parallelism", "expected"),
    [(None, 1, "v\n"), (None, 2, "2> v\n"), ("id", 1, "id> v\n"), ("id", 2, "id:2> v\n")],
)
def test_print_has_flinks_prefix(
    capsys: pytest.CaptureFixture[str], identifier: str | None, parallelism: int, expected: str
) -> None:
    sink = PrintSinkFunction(identifier)
    sink.open(subtask(1 if parallelism > 1 else 0, parallelism))
    sink.invoke("v", None)  # type: ignore[arg-type]
    assert capsys.readouterr().out == expected


def test_functions_open_and_close_by_default() -> None:
    class Identity(MapFunction):
        def map(self, value: Any) -> Any:
            return value

    function = Identity()
    function.open(subtask(0, 1))
    assert function.close() is None  # type: ignore[func-returns-value]
