"""The plan and the functions for a replay: of a program that is run again, of a stream, or of the job as it shipped."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from rekindle.checkpoint.recordings import Recording
from rekindle.checkpoint.store.options import store_options
from rekindle.datastream.main_program import MainProgram
from rekindle.datastream.transformations import Program
from rekindle.graph.build import build_plan
from rekindle.graph.nodes import JobPlan, OperatorKind, OperatorNode
from rekindle.graph.shipping import CopiedJob, JobCode, install
from rekindle.replay.find_recording import StoredRecording
from rekindle.replay.job_of_program import with_job_of
from rekindle.replay.replay import ReplayOptions, ReplayOutcome, replay
from rekindle.runtime.unpack_files import place_files

T = TypeVar("T")


def plan_for(recording: Recording, program: Program) -> JobPlan:
    """The plan of a program, with the parallelism that the cluster gave it when it failed."""
    return build_plan(program, recording.parallelism, recording.max_parallelism)


def replay_program(
    stored: StoredRecording, call: MainProgram, options: ReplayOptions, then: Callable[[ReplayOutcome], T]
) -> T:
    """Replay with the functions of a program, which is run again up to its job; `then` gets the outcome."""

    def with_program(program: Program) -> T:
        plan = plan_for(stored.recording, program)
        configured = replace(options, store_options=options.store_options or store_options(program.configuration))
        with replay(stored.recording, plan, CopiedJob(plan), configured) as outcome:
            return then(outcome)

    return with_job_of(call, with_program)


def replay_shipped(stored: StoredRecording, options: ReplayOptions, then: Callable[[ReplayOutcome], T]) -> T:
    """Replay with the code that the failed job had shipped. It is unpickled: the user must trust the recording."""
    with installed(stored.shipped_job()) as (plan, code), replay(stored.recording, plan, code, options) as outcome:
        return then(outcome)


@contextmanager
def installed(program: bytes) -> Iterator[tuple[JobPlan, JobCode]]:
    """A block in which this process can import a shipped job's code."""
    main, path = sys.modules["__main__"], list(sys.path)
    with tempfile.TemporaryDirectory(prefix="rekindle-shipped-") as directory:
        try:
            job = install(program, directory)
            nodes = tuple(_with_source(node, job) for node in job.plan.nodes)
            yield replace(job.plan, nodes=nodes, cached_files=place_files(job.cached_files, directory)), job
        finally:
            sys.modules["__main__"], sys.path[:] = main, path


def _with_source(node: OperatorNode, code: JobCode) -> OperatorNode:
    """A shipped plan has no functions: how splits are dealt out is asked of the source."""
    return replace(node, function=code.load_function(node.id)) if node.kind is OperatorKind.SOURCE_READER else node
