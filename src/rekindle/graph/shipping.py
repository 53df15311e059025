"""Ships a job to the slots: the plan, each function on its own, and the code that the slots cannot import.

Each function is pickled separately, so that every operator of every subtask unpickles an instance of its own.
"""

from __future__ import annotations

import logging
import pickle
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Protocol

from rekindle import config, pyflink_names
from rekindle.datastream.streams.keyed_stream import user_selector
from rekindle.datastream.transformations import Program
from rekindle.errors import SerializationError
from rekindle.graph.nodes import JobPlan, OperatorNode, StreamEdge
from rekindle.graph.pickling_error import serialization_error
from rekindle.graph.python_files import PROGRAM_DIRECTORY, added_files, program_modules, script_directory
from rekindle.graph.ship_dependencies import ShippedDependencies, place_dependencies, ship_dependencies
from rekindle.graph.ship_files import ShippedFile, ship_files
from rekindle.serde import cloud_dumps

_LOG = logging.getLogger("rekindle.graph")

#: Placeholder for a key selector or partitioner in a stripped plan, so that `is_keyed` stays correct.
SHIPPED = "shipped apart"
#: The key of an entry of `main_names` that holds all names at once; no Python name is equal to it.
_ALL_NAMES = "*"


@dataclass(frozen=True)
class ShippedJob:
    """The payload that every slot gets. Its parts are bytes: modules must be installed before they are unpickled."""

    plan: bytes
    functions: Mapping[int, bytes]  # node id
    selectors: Mapping[tuple[int, int], bytes]  # (node id, input index)
    edge_functions: Mapping[tuple[int, str], bytes]  # (edge id, "key_selector" | "partitioner")
    main_names: Mapping[str, bytes]  # classes and functions of the driver's __main__
    modules: Mapping[str, bytes]  # relative path -> source
    added_files: Mapping[str, bytes] = field(default_factory=dict)
    added_search: tuple[str, ...] = ()
    script_directory: str | None = None
    cached_files: Sequence[ShippedFile] = ()
    pyflink_names: bool = False  # whether `import pyflink` means Rekindle in the program
    dependencies: ShippedDependencies = field(default_factory=ShippedDependencies)


# -- driver -----------------------------------------------------------------------------------------------------------


def ship(plan: JobPlan, program: Program, dependencies: ShippedDependencies | None = None) -> bytes:
    """The job as one payload. The error for a function that cannot be pickled names its operator and the path."""
    if dependencies is None:
        dependencies = ship_dependencies(program.configuration)
    python_files = program.configuration.get(config.PYTHON_FILES)
    files, search = added_files(python_files or ())
    names = {node.id: node.name for node in plan.nodes}
    job = ShippedJob(
        plan=_dump("plan", stripped(plan)),
        functions={node.id: _dump(node.name, node.function) for node in plan.nodes if node.function is not None},
        selectors={
            (node.id, index): _dump(node.name, selector)
            for node in plan.nodes
            for index, selector in enumerate(node.key_selectors)
            if selector is not None
        },
        edge_functions={
            (edge.id, role): _dump(names[edge.target], function)
            for edge in plan.edges
            for role, function in (("key_selector", edge.key_selector), ("partitioner", edge.partitioner))
            if function is not None
        },
        main_names=_main_names(),
        modules=program_modules(),
        added_files=files,
        added_search=tuple(search),
        script_directory=script_directory(),
        cached_files=ship_files(program.cached_files),
        pyflink_names=pyflink_names.is_installed(),
        dependencies=dependencies,
    )
    return pickle.dumps(job, protocol=5)


def stripped(plan: JobPlan) -> JobPlan:
    """The plan without functions."""
    return replace(
        plan,
        nodes=tuple(_stripped_node(node) for node in plan.nodes),
        edges=tuple(_stripped_edge(edge) for edge in plan.edges),
    )


def _stripped_node(node: OperatorNode) -> OperatorNode:
    selectors = tuple(None if selector is None else SHIPPED for selector in node.key_selectors)
    return replace(node, function=None, key_selectors=selectors)


def _stripped_edge(edge: StreamEdge) -> StreamEdge:
    return replace(
        edge,
        key_selector=None if edge.key_selector is None else SHIPPED,
        partitioner=None if edge.partitioner is None else SHIPPED,
    )


def _dump(operator: str, value: Any) -> bytes:
    try:
        return cloud_dumps(value)
    except Exception as error:
        raise serialization_error(operator, user_selector(value), error) from error


def _main_names() -> dict[str, bytes]:
    """Classes and functions of the driver's `__main__`, pickled, so that slots can unpickle records of these classes.

    They are pickled together, so that shared objects travel once; one by one only if one of them cannot be pickled.
    """
    names = {
        name: value
        for name, value in dict(vars(sys.modules["__main__"])).items()  # other threads may define names meanwhile
        if isinstance(value, type | FunctionType) and value.__module__ == "__main__"
    }
    try:
        return {_ALL_NAMES: cloud_dumps(names)}
    except Exception as error:
        _LOG.debug("the names of __main__ are shipped one by one: %s", error)
    found: dict[str, bytes] = {}
    for name, value in names.items():
        try:
            found[name] = cloud_dumps(value)
        except Exception as error:
            _LOG.debug("__main__.%s is not shipped: %s", name, error)
    return found


# -- slot -------------------------------------------------------------------------------------------------------------


class JobCode(Protocol):
    """The functions of a job, a new instance with each call."""

    def load_function(self, node_id: int) -> Any: ...
    def load_selector(self, node_id: int, input_index: int) -> Any: ...
    def load_edge_function(self, edge_id: int, role: str) -> Any: ...


class CopiedJob:
    """The functions of a plan that was built in this process, copied as if they had been shipped."""

    def __init__(self, plan: JobPlan) -> None:
        self._plan = plan

    def load_function(self, node_id: int) -> Any:
        """A copy of an operator's function."""
        return _shipped_copy(self._plan.nodes[node_id].function)

    def load_selector(self, node_id: int, input_index: int) -> Any:
        """A copy of the key selector of an operator's input."""
        return _shipped_copy(self._plan.nodes[node_id].key_selectors[input_index])

    def load_edge_function(self, edge_id: int, role: str) -> Any:
        """A copy of an edge's `key_selector` or `partitioner`."""
        return _shipped_copy(getattr(self._plan.edges[edge_id], role))


def _shipped_copy(function: Any) -> Any:
    return pickle.loads(cloud_dumps(function))


class InstalledJob:
    """A job whose code this process can import."""

    def __init__(self, shipped: ShippedJob) -> None:
        self._shipped = shipped
        self.cached_files = shipped.cached_files
        self.plan: JobPlan = pickle.loads(shipped.plan)

    def load_function(self, node_id: int) -> Any:
        """A new instance of an operator's function; None for an operator without one."""
        data = self._shipped.functions.get(node_id)
        return None if data is None else self._load(data, self.plan.nodes[node_id].name)

    def load_selector(self, node_id: int, input_index: int) -> Any:
        """A new instance of the key selector of an operator's input."""
        return self._load(self._shipped.selectors[node_id, input_index], self.plan.nodes[node_id].name)

    def load_edge_function(self, edge_id: int, role: str) -> Any:
        """A new instance of an edge's `key_selector` or `partitioner`."""
        target = self.plan.nodes[self.plan.edges[edge_id].target]
        return self._load(self._shipped.edge_functions[edge_id, role], target.name)

    @staticmethod
    def _load(data: bytes, operator: str) -> Any:
        try:
            return pickle.loads(data)
        except (ImportError, AttributeError) as error:
            raise SerializationError(
                f"Operator '{operator}' needs code that is not on this machine: {error}. Ship it with "
                "add_python_file(), or install it where the executors run."
            ) from error


def unship(program: bytes) -> ShippedJob:
    """Unpack the payload of `ship`, without unpickling any user object."""
    shipped = pickle.loads(program)
    assert isinstance(shipped, ShippedJob)
    return shipped


def install(program: bytes, directory: str) -> InstalledJob:
    """Write the shipped code below `directory`, make it importable, and install the program's names as `__main__`."""
    shipped = unship(program)
    if shipped.pyflink_names:
        pyflink_names.install()
    root = Path(directory) / PROGRAM_DIRECTORY
    for name, content in {**shipped.modules, **shipped.added_files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    place_dependencies(shipped.dependencies, directory)
    search = [str(root), *(str(root / name) for name in shipped.added_search)]
    sys.path[:0] = [entry for entry in search if entry not in sys.path]
    beside = shipped.script_directory
    if beside is not None and Path(beside).is_dir() and beside not in sys.path:
        sys.path.append(beside)
    _install_main(shipped.main_names)
    return InstalledJob(shipped)


def _install_main(names: Mapping[str, bytes]) -> None:
    """Replace `__main__` with a new module of the program's names; the slot's own code keeps its old globals."""
    main = ModuleType("__main__")
    main.__dict__["__replaced__"] = sys.modules.get("__main__")
    sys.modules["__main__"] = main
    for name, data in names.items():
        try:
            loaded = pickle.loads(data)
            main.__dict__.update(loaded if name == _ALL_NAMES else {name: loaded})
        except Exception as error:
            _LOG.warning("__main__.%s of the program cannot be used here: %s", name, error)
