"""Shipping a job to a slot: a fresh interpreter without any of the program's modules."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rekindle.datastream import MapFunction, StreamExecutionEnvironment
from rekindle.errors import SerializationError
from rekindle.graph.build import build_plan
from rekindle.graph.python_files import added_files, program_modules
from rekindle.graph.shipping import InstalledJob, ship, stripped, unship

SRC = Path(__file__).resolve().parents[3] / "src"


class Client:
    def __init__(self) -> None:
        self.lock = threading.Lock()


class Enrich(MapFunction):
    def __init__(self) -> None:
        self.client = Client()

    def map(self, value: Any) -> Any:
        return value


class Counting(MapFunction):
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def map(self, value: Any) -> Any:
        self.seen.append(value)
        return len(self.seen)


def shipped(env: StreamExecutionEnvironment) -> bytes:
    program = env._program("job")
    return ship(build_plan(program), program)


def cannot_ship(env: StreamExecutionEnvironment) -> str:
    with pytest.raises(SerializationError) as refused:
        shipped(env)
    return str(refused.value)


# -- functions on their own -------------------------------------------------------------------------------------------


def test_every_load_is_an_instance_of_its_own(env: StreamExecutionEnvironment) -> None:
    env.from_collection([1]).map(Counting())
    job = InstalledJob(unship(shipped(env)))
    first, second = job.load_function(1), job.load_function(1)
    assert (first.map("a"), first.map("b"), second.map("c")) == (1, 2, 1)


def test_selectors_and_partitioners_travel_with_their_edges(env: StreamExecutionEnvironment) -> None:
    numbers = env.from_sequence(1, 9)
    numbers.key_by(lambda n: n % 3).reduce(lambda a, b: a + b)
    numbers.partition_custom(lambda key, n: key % n, lambda n: n + 1).map(str)
    job = InstalledJob(unship(shipped(env)))
    assert job.load_selector(1, 0)(5) == 2
    assert job.load_edge_function(0, "key_selector")(5) == 2
    assert job.load_edge_function(1, "key_selector")(5) == 6
    assert job.load_edge_function(1, "partitioner")(5, 2) == 1
    assert job.load_function(1)(3, 4) == 7


def test_the_shipped_plan_has_no_functions_but_says_what_is_keyed(env: StreamExecutionEnvironment) -> None:
    env.from_sequence(1, 9).key_by(lambda n: n % 3).reduce(lambda a, b: a + b)
    plan = build_plan(env._program("job"))
    without = stripped(plan)
    assert [node.function for node in without.nodes] == [None, None]
    assert [node.is_keyed for node in without.nodes] == [False, True]
    assert without.placement == plan.placement
    job = InstalledJob(unship(shipped(env)))
    assert job.plan == without
    assert job.plan.has_tasks(job.plan.chains[0])


# -- functions that cannot be pickled ---------------------------------------------------------------------------------


def test_an_attribute_is_named_with_its_path(env: StreamExecutionEnvironment) -> None:
    env.from_collection([1]).map(Enrich()).name("enrich")
    message = cannot_ship(env)
    assert "Operator 'enrich': attribute self.client -> .lock: cannot pickle '_thread.lock' object" in message
    assert "create it in open()" in message


def test_a_closure_is_named_with_its_path(env: StreamExecutionEnvironment) -> None:
    clients = {"eu": [Client()]}
    env.from_collection([1]).map(lambda n: clients["eu"][0]).name("lookup")
    message = cannot_ship(env)
    assert "Operator 'lookup': variable 'clients' of a lambda -> ['eu'] -> [0] -> .lock" in message


def test_elements_and_selectors_are_named(env: StreamExecutionEnvironment) -> None:
    env.from_collection([1, Client()]).print()
    assert "Operator 'Source: Collection Source': attribute self.elements -> [1] -> .lock" in cannot_ship(env)


def test_a_selector_is_named_with_the_operator_it_leads_to(env: StreamExecutionEnvironment) -> None:
    client = Client()
    env.from_collection([1]).key_by(lambda n: client).reduce(max).name("largest")
    assert "Operator 'largest': variable 'client' of a lambda -> .lock" in cannot_ship(env)


def test_a_stream_inside_a_function_is_named(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection([1])
    stream.map(lambda n: stream).name("nested")
    assert "variable 'stream' of a lambda: a DataStream stays in the driver" in cannot_ship(env)


def test_partials_and_bound_methods_are_followed(env: StreamExecutionEnvironment) -> None:
    from functools import partial

    env.from_collection([1]).map(partial(max, Client())).name("partial")
    assert "the arguments of a partial -> [0] -> .lock" in cannot_ship(env)
    env.close()
    env.from_collection([1]).map(Enrich().map).name("bound")
    assert "the object of method map() -> .client -> .lock" in cannot_ship(env)


# -- modules ----------------------------------------------------------------------------------------------------------


def test_modules_of_the_program_travel_by_name_and_installed_ones_do_not(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text("a = 1")
    (tmp_path / "shop" / "prices.py").write_text("b = 2")
    loaded = {"pytest": pytest, "os": os}
    for name, file in (("shop", "shop/__init__.py"), ("shop.prices", "shop/prices.py"), ("gone", "gone.py")):
        loaded[name] = ModuleType(name)
        loaded[name].__file__ = str(tmp_path / file)
    assert program_modules(loaded) == {"shop/__init__.py": b"a = 1", "shop/prices.py": b"b = 2"}


def test_modules_may_be_imported_while_those_of_the_program_are_collected() -> None:
    loaded = dict(sys.modules)
    thresholds = gc.get_threshold()

    def another_import(phase: str, info: dict[str, int]) -> None:
        name = f"imported_{len(loaded)}"
        loaded[name] = ModuleType(name)

    gc.callbacks.append(another_import)
    gc.set_threshold(10)
    try:
        program_modules(loaded)
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(another_import)
    assert len(loaded) > len(sys.modules)


def test_added_files_packages_and_archives(tmp_path: Path) -> None:
    (tmp_path / "single.py").write_text("")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inside.py").write_text("")
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("zipped.py", "")
    names = [str(tmp_path / name) for name in ("single.py", "package", "folder", "archive.zip")]
    files, search = added_files(names)
    assert sorted(files) == [
        "added-0/single.py",
        "added-1/package/__init__.py",
        "added-2/folder/inside.py",
        "added-3/archive.zip",
    ]
    assert search == ["added-0", "added-1", "added-1/package", "added-2/folder", "added-3/archive.zip"]


def test_an_added_file_that_has_gone_is_named() -> None:
    with pytest.raises(SerializationError, match=r"nowhere\.py"):
        added_files(["nowhere.py"])


# -- a whole program --------------------------------------------------------------------------------------------------

PROGRAM = """
    import sys
    import threading
    from dataclasses import dataclass

    from beside import shout
    from rekindle.datastream import MapFunction, StreamExecutionEnvironment
    from rekindle.graph.build import build_plan
    from rekindle.graph.shipping import ship

    @dataclass
    class Order:
        item: str

    def polite(text):
        return "please, " + text

    class Label(MapFunction):
        def map(self, value):
            from added import suffix
            return Order(polite(shout(value.item)) + suffix)

    def typed(order: Order) -> Order:
        return order

    unpicklable = threading.Lock()

    def uses_unpicklable():
        return unpicklable

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.add_python_file(sys.argv[1])
    orders = env.from_collection([Order("pen")], type_info=Order)
    orders.map(Label(), output_type=Order).rebalance().map(typed)
    program = env._program("job")
    sys.stdout.buffer.write(ship(build_plan(program), program))
"""

SLOT = """
    import pickle, sys
    from rekindle.graph.shipping import install

    polite = "a name of the slot's own"
    job = install(sys.stdin.buffer.read(), sys.argv[1])
    source = job.load_function(0)
    label = job.load_function(1)
    again = job.load_function(2)
    record = label.map(source.elements[0])
    # As plain pickle between slots: the class is found in __main__, and it is everywhere the same one.
    copy = pickle.loads(pickle.dumps(record, protocol=5))
    assert type(copy) is type(record) is type(source.elements[0])
    assert job.plan.edges[1].type_info.exact_class() is type(record)
    assert not hasattr(sys.modules["__main__"], "uses_unpicklable")
    assert polite == "a name of the slot's own"
    print(again(copy))
"""


def run(code: str, file: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    file.write_text(textwrap.dedent(code))
    environment = {**os.environ, "PYTHONPATH": str(SRC)}
    done = subprocess.run(
        [sys.executable, str(file), *arguments], input=stdin, capture_output=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def test_a_program_with_classes_and_modules_of_its_own_runs_elsewhere(tmp_path: Path) -> None:
    home, elsewhere, slot_files = tmp_path / "home", tmp_path / "elsewhere", tmp_path / "slot"
    for folder in (home, elsewhere, slot_files):
        folder.mkdir()
    (home / "beside.py").write_text("def shout(text):\n    return text.upper()\n")
    added = tmp_path / "added.py"
    added.write_text("suffix = '!'\n")
    payload = run(PROGRAM, home / "program.py", str(added))
    # The slot cannot read the program's directory.
    home.rename(tmp_path / "moved")
    added.unlink()
    printed = run(SLOT, elsewhere / "slot.py", str(slot_files), stdin=payload)
    assert printed.decode().strip() == "Order(item='please, PEN!')"
