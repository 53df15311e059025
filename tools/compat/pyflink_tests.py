"""Runs PyFlink's own DataStream and common tests here: `FLINK_SOURCE=/path/to/flink make compat ARGS=pyflink_tests`.

The tests come from a checkout of Flink, which this repository does not hold; `pyflink` leads to Rekindle.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import logging
import os
import sys
import traceback
import unittest
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path

import cloudpickle
from pyspark import cloudpickle as spark_cloudpickle

from tools.compat.pyflink.java_stand_ins import NotPortableError
from tools.compat.pyflink.not_portable import why_not_portable

_FOLDERS = ("common/tests", "datastream/tests", "datastream/connectors/tests", "datastream/formats/tests")
#: State of these cases lives for a second of the clock: where a busy machine takes longer, they run again.
_WITH_SHORT_LIVED_STATE = {"test_keyed_process_function_with_state"}
_MOST_RUNS = 4
_MARKS = {"passed": "ok  ", "failed": "FAIL", "skipped": "skip", "not portable": "n/a "}


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case."""

    case: str
    kind: str  # a key of _MARKS
    reason: str = ""


def main(arguments: Sequence[str]) -> int:
    """Run the tests and print an outcome for each case; the status is 1 when a portable case fails."""
    options = _parse(arguments)
    source = os.environ.get("FLINK_SOURCE")
    if not source:
        print(
            "compat: set FLINK_SOURCE to a checkout of Flink (git clone https://github.com/apache/flink), whose "
            "flink-python/pyflink holds the tests.",
            file=sys.stderr,
        )
        return 1
    root = Path(source) / "flink-python" / "pyflink"
    if not root.is_dir():
        print(f"compat: FLINK_SOURCE is {source!r}, but there is no {root}.", file=sys.stderr)
        return 1
    return report(list(run(root, options.k or "", options.in_process)))


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="pyflink_tests", description=__doc__)
    parser.add_argument("-k", help="only cases whose name contains this")
    parser.add_argument("--in-process", action="store_true", help="run jobs in this process, without Spark")
    return parser.parse_known_args(arguments)[0]


def run(root: Path, part: str, in_process: bool) -> Iterator[Outcome]:
    """Run the cases whose name contains `part`."""
    from tools.compat.pyflink import in_process_launcher, stand_in_modules

    logging.getLogger("rekindle").setLevel(logging.ERROR)
    stand_in_modules.install()
    sys.meta_path.insert(0, TestFiles(root))
    if in_process:
        in_process_launcher.install()
    for folder in _FOLDERS:
        for path in sorted((root / folder).glob("test_*.py")):
            if path.name != "test_util.py":
                yield from _run_file(root, path, part)


def _run_file(root: Path, path: Path, part: str) -> Iterator[Outcome]:
    from tools.compat.pyflink.stand_in_modules import adapt

    relative = path.relative_to(root).with_suffix("").as_posix()
    try:
        module = importlib.import_module(f"pyflink.{relative.replace('/', '.')}")
        adapt(module)
        # Slots and Spark's workers know `pyflink` as Rekindle, and so nothing of its tests: their functions travel.
        cloudpickle.register_pickle_by_value(module)
        spark_cloudpickle.register_pickle_by_value(module)
    except Exception as error:
        yield Outcome(relative, "failed", f"cannot be imported: {error}")
        return
    for case in unittest.defaultTestLoader.loadTestsFromModule(module):
        for test in case:  # type: ignore[union-attr]
            yield from _run_case(relative, test, part)  # type: ignore[arg-type]


class TestFiles(MetaPathFinder):
    """Finds the test files of the checkout, also when one imports another."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the spec of a test file."""
        file = self._root / f"{fullname.removeprefix('pyflink.').replace('.', '/')}.py"
        if ".tests.test_" not in fullname or not file.is_file():
            return None
        return importlib.util.spec_from_file_location(fullname, file)


def _run_case(file: str, test: unittest.TestCase, part: str) -> Iterator[Outcome]:
    case = f"{file}::{type(test).__name__}.{test._testMethodName}"
    if part not in case:
        return
    reason = why_not_portable(case)
    if reason is not None and not _is_skipped_by_pyflink(test):
        outcome = Outcome(case, "not portable", reason)
    else:
        outcome = _outcome(case, test)
        for _ in range(_MOST_RUNS - 1 if test._testMethodName in _WITH_SHORT_LIVED_STATE else 0):
            if outcome.kind == "failed":
                outcome = _outcome(case, test)
    print(f"{_MARKS[outcome.kind]} {case}" + (f": {outcome.reason}" if outcome.reason else ""), flush=True)
    yield outcome


def _is_skipped_by_pyflink(test: unittest.TestCase) -> bool:
    method = getattr(test, test._testMethodName)
    return any(getattr(each, "__unittest_skip__", False) for each in (type(test), method))


def _outcome(case: str, test: unittest.TestCase) -> Outcome:
    errors: list[BaseException] = []

    class Result(unittest.TestResult):
        def addError(self, test: unittest.TestCase, err: object) -> None:
            errors.append(err[1])  # type: ignore[index]

        addFailure = addError

    result = Result()
    unittest.TestSuite([test]).run(result)
    if result.skipped:
        return Outcome(case, "skipped", result.skipped[0][1])
    if not errors:
        return Outcome(case, "passed")
    error = errors[0]
    if os.environ.get("COMPAT_TRACEBACK"):
        traceback.print_exception(error)
    if isinstance(error, NotPortableError):
        return Outcome(case, "failed", f"it needs a Java object without a stand-in: {error}")
    text = " | ".join(line for line in str(error).splitlines() if line.strip())
    return Outcome(case, "failed", f"{type(error).__name__}: {text[-300:]}")


def report(outcomes: Sequence[Outcome]) -> int:
    """Print the totals and the failed cases."""
    counts = Counter(outcome.kind for outcome in outcomes)
    portable = counts["passed"] + counts["failed"]
    print(
        f"\n{counts['passed']} of {portable} portable cases of PyFlink's tests pass; PyFlink skips {counts['skipped']} "
        f"itself, {counts['not portable']} are not portable:"
    )
    not_portable = Counter(outcome.reason for outcome in outcomes if outcome.kind == "not portable")
    for reason, cases in not_portable.most_common():
        print(f"  {cases:2} {reason}")
    for outcome in outcomes:
        if outcome.kind == "failed":
            print(f"  {outcome.case}: {outcome.reason}")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
