"""The page that lists every public name of PyFlink's DataStream API, and what it is here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

Names = Mapping[str, Mapping[str, list[str]]]

_JAVA = "it is a Java object"
_CONNECTOR = "Rekindle has no such connector"
_INTERNAL = "a part of PyFlink's engine"
#: Why a module, a name or a method is not here.
_WHY_NOT: dict[str, str] = {
    "pyflink.common.io": "an input format is a Java class: use `from_source`",
    "pyflink.common.utils": _JAVA,
    "pyflink.common.serialization.RowDataBulkWriterFactory": _JAVA,
    "pyflink.common.watermark_strategy.AssignerWithPeriodicWatermarksWrapper": _INTERNAL,
    "pyflink.datastream.connectors.base.StreamTransformer": _INTERNAL,
    "pyflink.datastream.connectors.base.SupportsPreprocessing": _INTERNAL,
    "pyflink.datastream.connectors.cassandra": _CONNECTOR,
    "pyflink.datastream.connectors.dynamic_kafka": _CONNECTOR,
    "pyflink.datastream.connectors.elasticsearch": _CONNECTOR,
    "pyflink.datastream.connectors.kinesis": _CONNECTOR,
    "pyflink.datastream.connectors.pulsar": _CONNECTOR,
    "pyflink.datastream.connectors.rabbitmq": _CONNECTOR,
    "pyflink.datastream.connectors.hybrid_source": "not yet",
    "pyflink.datastream.connectors.file_system.FileCompactStrategy": "not yet",
    "pyflink.datastream.connectors.file_system.FileCompactor": "not yet",
    "pyflink.datastream.connectors.file_system.StreamingFileSink": "not yet: use `FileSink`",
    "pyflink.datastream.connectors.kafka.FlinkKafkaProducerBase": _INTERNAL,
    "pyflink.datastream.formats.avro": "not yet",
    "pyflink.datastream.formats.csv": "not yet",
    "pyflink.datastream.formats.orc": "not yet",
    "pyflink.datastream.formats.parquet": "not yet",
    "pyflink.datastream.functions.FunctionWrapper": _INTERNAL,
    "pyflink.datastream.functions.Internal": _INTERNAL,
    "pyflink.datastream.functions.JavaFunctionWrapper": _JAVA,
    "pyflink.datastream.functions.NullByteKeySelector": _INTERNAL,
    "pyflink.datastream.functions.PassThrough": _INTERNAL,
    "pyflink.datastream.functions.ReduceFunctionWrapper": _INTERNAL,
    "pyflink.datastream.utils": _INTERNAL,
    "pyflink.datastream.window.Min": _INTERNAL,
    "pyflink.datastream.window.WindowOperationDescriptor": _INTERNAL,
    "pyflink.datastream.window.long_to_int_with_bit_mixing": _INTERNAL,
    "pyflink.datastream.window.mod_inverse": _INTERNAL,
    "pyflink.common.typeinfo.SqlTimeTypeInfo.": "the class only names three types",
    "get_java_": _JAVA,
    "to_j_": _JAVA,
    "get_transformer": _INTERNAL,
    "BaseBuilder": _INTERNAL,
}
#: How a name that is here differs from PyFlink's.
_DIFFERS: dict[str, str] = {
    "pyflink.common.configuration.Configuration": "a mistyped key of Flink's is refused; see the guide of settings",
    "pyflink.common.typeinfo.TypeInformation": "`repr` is shorter; `str` is PyFlink's",
    "pyflink.datastream.connectors.kafka.FlinkKafkaConsumer": "it is polled like `KafkaSource`",
    "pyflink.datastream.stream_execution_environment.StreamExecutionEnvironment.add_jars": "has no effect, with a "
    "warning: there is no Java code in a job",
    "pyflink.datastream.stream_execution_environment.StreamExecutionEnvironment.add_classpaths": "has no effect, with "
    "a warning",
    "pyflink.datastream.stream_execution_environment.StreamExecutionEnvironment.create_input": "refused: an input "
    "format is a Java class",
    "pyflink.datastream.state_backend.CustomStateBackend": "refused: it is a Java class",
    "pyflink.datastream.checkpoint_storage.CustomCheckpointStorage": "refused: it is a Java class",
    "pyflink.datastream.state_backend.EmbeddedRocksDBStateBackend.set_options": "has no effect, with a warning",
    "pyflink.datastream.state_backend.EmbeddedRocksDBStateBackend.set_predefined_options": "has no effect, with a "
    "warning",
    "pyflink.datastream.data_stream.KeyedStream.print": "the identifier is printed, which PyFlink leaves out",
    "pyflink.datastream.data_stream.DataStream.set_buffer_timeout": "has no effect, with a warning",
}


@dataclass(frozen=True)
class Entry:
    """A name of PyFlink, and what it is here."""

    name: str
    status: str  # "same", "differs: ...", "not here: ..."


class UnexplainedNameError(Exception):
    """A name of PyFlink that is not here, and no reason is given."""


def page_of(names: Names, version: str) -> str:
    """The whole page, in Markdown."""
    counts = {"same": 0, "differs": 0, "not here": 0}
    sections = []
    for module in sorted(names):
        entries = list(entries_of(module, names[module]))
        for entry in entries:
            counts[entry.status.partition(":")[0]] += 1
        lines = [f"| `{entry.name}` | {entry.status} |" for entry in entries]
        sections.append("\n".join([f"## {module}", "", "| name | here |", "|---|---|", *lines, ""]))
    head = _HEAD.format(version=version, same=counts["same"], differs=counts["differs"], missing=counts["not here"])
    return head + "\n".join(sections)


_HEAD = """\
# Every name of PyFlink's DataStream API

PyFlink {version}, module by module: `pyflink.x` is `rekindle.x` here. **Same**: {same} names. **Differs**: {differs}, \
with how. **Not here**: {missing}, with why. `python -m tools.compat pyflink_names` writes this page from an installed \
PyFlink; a test holds it.

"""


def entries_of(module_name: str, names: Mapping[str, list[str]]) -> Iterator[Entry]:
    """An entry for each class or function of a module, and for each method that is not the same."""
    module = _counterpart(module_name)
    for name in sorted(names):
        full = f"{module_name}.{name}"
        here = getattr(module, name, None)
        if here is None:
            yield Entry(name, f"not here: {_why_not(full)}")
            continue
        how = _DIFFERS.get(full)
        yield Entry(name, "same" if how is None else f"differs: {how}")
        for method in names[name]:
            own = f"{full}.{method}"
            if own in _DIFFERS:
                yield Entry(f"{name}.{method}", f"differs: {_DIFFERS[own]}")
            elif has(here, method):
                yield Entry(f"{name}.{method}", "same")
            else:
                yield Entry(f"{name}.{method}", f"not here: {_why_not(own)}")


def has(kind: Any, name: str) -> bool:
    """Whether a class has an attribute of its own; the special methods of `object` do not count."""
    found = getattr(kind, name, None)
    return hasattr(kind, name) and not (name.startswith("__") and found is getattr(object, name, None))


def _counterpart(module_name: str) -> ModuleType | None:
    try:
        return import_module(module_name.replace("pyflink", "rekindle", 1))
    except ModuleNotFoundError:
        return None


def _why_not(full: str) -> str:
    last = full.rpartition(".")[2]
    for part, reason in _WHY_NOT.items():
        if full.startswith(part) or last.startswith(part):
            return reason
    raise UnexplainedNameError(f"{full} is not here: build it, or give the reason in {__name__}._WHY_NOT.")
