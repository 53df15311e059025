"""Stand-ins for the few Java objects that PyFlink's tests read beside the Python API: configuration, plan, rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rekindle.common import Configuration, Row
from rekindle.common.watermark_strategy import Watermark, WatermarkGenerator, WatermarkOutput, WatermarkStrategy
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.datastream.data_stream import DataStream
from rekindle.datastream.slot_sharing_group import SlotSharingGroup
from rekindle.graph.build import build_plan
from rekindle.graph.nodes import JobPlan, OperatorNode
from tools.compat.pyflink.java_avro import AVRO_CLASSES


class NotPortableError(Exception):
    """A test reached for a Java object that has no stand-in."""


#: Constants of Java classes, as Flink 2.3 has them.
CONSTANTS: dict[str, Any] = {
    "org.apache.flink.api.common.ExecutionConfig.PARALLELISM_DEFAULT": -1,
    "org.apache.flink.api.common.ExecutionConfig.PARALLELISM_UNKNOWN": -2,
    "org.apache.flink.runtime.state.storage.JobManagerCheckpointStorage.DEFAULT_MAX_STATE_SIZE": 5 * 1024 * 1024,
    "org.apache.flink.configuration.ExecutionOptions.RUNTIME_MODE": "execution.runtime-mode",
}
#: Options of Java classes, by the key that their `key()` returns.
OPTION_KEYS = {
    "org.apache.flink.configuration.PipelineOptions.JARS": "pipeline.jars",
    "org.apache.flink.configuration.PipelineOptions.CLASSPATHS": "pipeline.classpaths",
}


class JavaOption:
    """A `ConfigOption` of Java."""

    def __init__(self, key: str) -> None:
        self._key = key

    def key(self) -> str:
        """The option's key."""
        return self._key


class JavaConfiguration:
    """Flink's `Configuration` over ours."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration

    def setString(self, key: str, value: str) -> None:
        """Set a key."""
        self.configuration.set_string(key, value)

    def getString(self, key: str, default: str | None) -> Any:
        """A key's value as Java prints it."""
        if not self.configuration.contains_key(key):
            return default
        value = self.configuration._values[key]
        return str(list(value)) if isinstance(value, list | tuple) else self.configuration.get_string(key, "")

    def getValue(self, option: str) -> str:
        """An option's value."""
        return self.configuration.get_string(option, "")

    def toMap(self) -> dict[str, str]:
        """All settings."""
        return self.configuration.to_dict()


class JavaRow(Row):
    """`org.apache.flink.types.Row`."""

    __slots__ = ()

    def __init__(self, arity: int) -> None:
        super().__init__(*[None] * arity)

    def setField(self, position: int, value: Any) -> None:
        """Set a field."""
        self[position] = value

    def equals(self, other: Any) -> bool:
        """Whether another row, of either side, has the same fields."""
        return len(self) == len(other) and all(
            mine.equals(theirs) if isinstance(mine, JavaRow) else mine == theirs
            for mine, theirs in zip(self, other, strict=True)
        )


class JavaStream:
    """A Java `DataStream`: only what `test_partition_custom` does with one."""

    def __init__(self, stream: DataStream) -> None:
        self.stream = stream

    def map(self, function: Callable[[Any], Any]) -> JavaStream:
        """The stream that the function makes of it."""
        return JavaStream(self.stream.map(function))


class JavaEnvironment:
    """A Java `StreamExecutionEnvironment` over ours."""

    def __init__(self, env: StreamExecutionEnvironment) -> None:
        self.env = env

    def getStreamGraph(self, clear: bool) -> JavaGraph:
        """The plan of what was built so far."""
        graph = JavaGraph(self.env)
        if clear:
            self.env._transformations.clear()
        return graph

    def fromCollection(self, elements: JavaList, type_info: Any) -> JavaStream:
        """A stream of elements."""
        return JavaStream(self.env.from_collection(list(elements), type_info))

    def getConfiguration(self) -> JavaConfiguration:
        """The environment's configuration."""
        return JavaConfiguration(self.env._configuration)

    def getCachedFiles(self) -> JavaList:
        """The registered files: (name, file)."""
        return JavaList([JavaTuple((name, file)) for name, file in self.env._cached_files.items()])


class JavaList(list[Any]):
    """A `java.util.List`."""

    def size(self) -> int:
        """The number of elements."""
        return len(self)

    def get(self, position: int) -> Any:
        """An element."""
        return self[position]

    def add(self, element: Any) -> None:
        """Add an element."""
        self.append(element)

    def toArray(self) -> list[Any]:
        """The elements."""
        return list(self)


class JavaTuple(tuple[Any, ...]):
    """A `Tuple2`."""

    def getField(self, position: int) -> Any:
        """A field."""
        return self[position]


class JavaGraph:
    """A `StreamGraph` over our plan."""

    def __init__(self, env: StreamExecutionEnvironment) -> None:
        self._env = env
        self.plan: JobPlan = build_plan(env._program(None))
        self.transformations = {each.name: each for each in env._transformations}

    def getStreamNodes(self) -> JavaList:
        """The operators."""
        return JavaList(JavaNode(self, node) for node in self.plan.nodes)

    def getSlotSharingGroupResource(self, name: str) -> JavaOptional:
        """The resources of a group."""
        group: SlotSharingGroup | None = self._env._slot_sharing_groups.get(name)
        return JavaOptional(None if group is None or group.get_cpu_cores() is None else JavaResources(group))


class JavaOptional:
    """A `java.util.Optional`."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def isPresent(self) -> bool:
        """Whether there is a value."""
        return self._value is not None

    def get(self) -> Any:
        """The value."""
        return self._value


class JavaResources:
    """A `ResourceProfile`."""

    def __init__(self, group: SlotSharingGroup) -> None:
        self._group = group

    def getCpuCores(self) -> JavaValue:
        """The cores."""
        return JavaValue(self._group.get_cpu_cores())

    def getTaskHeapMemory(self) -> Any:
        """The memory on the heap."""
        return self._group.get_task_heap_memory()


class JavaValue:
    """A `CPUResource`."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def getValue(self) -> Any:
        """The number."""
        return self._value


class JavaNode:
    """A `StreamNode` over an operator of our plan."""

    def __init__(self, graph: JavaGraph, node: OperatorNode) -> None:
        self.graph, self.node = graph, node

    def getOperatorName(self) -> str:
        """The operator's name."""
        return self.node.name.removeprefix("Source: ").removeprefix("Sink: ")

    def getSlotSharingGroup(self) -> str | None:
        """The group whose slots it shares."""
        group = self.graph.transformations[self.getOperatorName()].slot_sharing_group
        return group if group is None or isinstance(group, str) else group.get_name()

    def getInEdges(self) -> JavaList:
        """The edges that end here."""
        return JavaList(edge for edge in self.graph.plan.edges if edge.target == self.node.id)

    def getOutEdges(self) -> JavaList:
        """The edges that begin here."""
        return JavaList(edge for edge in self.graph.plan.edges if edge.source == self.node.id)


def is_chainable(edge: Any, graph: JavaGraph) -> bool:
    """Whether both ends of an edge are in one task."""
    return graph.plan.chain_of(edge.source) is graph.plan.chain_of(edge.target)


class JavaSchema:
    """A Java `SerializationSchema` or `DeserializationSchema` over one of ours."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema

    def open(self, context: Any) -> None:
        """Prepare for the first record."""
        self._schema.open(context)

    def serialize(self, element: Any) -> bytes:
        """The bytes of a record."""
        return self._schema.serialize(element)

    def deserialize(self, message: bytes) -> Any:
        """The record of a message."""
        return self._schema.deserialize(message)

    def getFieldIndex(self) -> int:
        """The position of `RowFieldExtractorSchema`."""
        return self._schema._field_index

    def equals(self, other: JavaSchema) -> bool:
        """Whether the schemas are equal."""
        return self._schema == other._schema

    def hashCode(self) -> int:
        """The schema's hash."""
        return hash(self._schema)


def _partition_test_map() -> Callable[[Any], Any]:
    return lambda value: value


class PerElementWatermarks(WatermarkGenerator):
    """A watermark after each element, as Flink's `PerElementWatermarkGenerator` emits it."""

    @staticmethod
    def getSupplier() -> type[PerElementWatermarks]:
        """What makes the generator."""
        return PerElementWatermarks

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Emit the element's time."""
        output.emit_watermark(Watermark(event_timestamp))

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Emit nothing more."""


#: Java classes and functions by their full name.
CLASSES: dict[str, Any] = AVRO_CLASSES | {
    "java.util.ArrayList": JavaList,
    "org.apache.flink.types.Row": JavaRow,
    "org.apache.flink.connector.testutils.formats.DummyInitializationContext": lambda: None,
    "org.apache.flink.python.util.PythonConfigUtil.getEnvironmentConfig": lambda env: env.getConfiguration(),
    "org.apache.flink.python.util.PartitionCustomTestMapFunction": _partition_test_map,
    "org.apache.flink.streaming.api.functions.python.eventtime.PerElementWatermarkGenerator": PerElementWatermarks,
    "org.apache.flink.api.common.eventtime.WatermarkStrategy.forGenerator": WatermarkStrategy.for_generator,
    "org.apache.flink.streaming.api.graph.StreamingJobGraphGenerator.isChainable": is_chainable,
}


class JavaName:
    """A dotted name below `jvm`; a name without a stand-in fails only when it is called."""

    def __init__(self, name: str = "") -> None:
        self._name = name

    def __getattr__(self, part: str) -> Any:
        name = f"{self._name}.{part}".lstrip(".")
        if name in CONSTANTS:
            return CONSTANTS[name]
        if name in OPTION_KEYS:
            return JavaOption(OPTION_KEYS[name])
        return CLASSES.get(name) or JavaName(name)

    def __str__(self) -> str:
        return self._name

    def __call__(self, *arguments: Any) -> Any:
        raise NotPortableError(f"there is no Java class {self._name}")


class Gateway:
    """PyFlink's gateway to its JVM."""

    jvm = JavaName()
