"""Java objects whose fields PyFlink's tests read by reflection: views of ours, with the values that ours have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rekindle.common.watermark_strategy import WatermarkStrategy
from rekindle.datastream.connectors.file_system import FileSource
from rekindle.datastream.connectors.number_seq import NumberSequenceSource

_GENERATORS = {
    "none": "NoWatermarksGenerator",
    "monotonous": "AscendingTimestampsWatermarks",
    "bounded": "BoundedOutOfOrdernessWatermarks",
}


class JavaView:
    """A Java object: the name of its class, and its fields, which `getName()` returns, too."""

    def __init__(self, java_class: str, **fields: Any) -> None:
        self.java_class, self.fields = java_class, fields

    def __getattr__(self, name: str) -> Callable[[], Any]:
        field = f"{name[3:4].lower()}{name[4:]}"
        if not name.startswith("get") or field not in self.fields:
            raise AttributeError(f"The stand-in of {self.java_class} has no {name}().")
        return lambda: self.fields[field]


class JavaStrategyView(JavaView):
    """A strategy, with the generator that Flink makes of it."""

    def __init__(self, strategy: WatermarkStrategy) -> None:
        self.strategy = strategy
        super().__init__(_class_of(strategy), **_fields_of(strategy))

    def createWatermarkGenerator(self, context: Any) -> JavaView:
        """The generator, with its bound."""
        bound = self.strategy.max_out_of_orderness_ms
        return JavaView(_GENERATORS[self.strategy.kind], outOfOrdernessMillis=bound)


def _class_of(strategy: WatermarkStrategy) -> str:
    if strategy.alignment is not None:
        return "WatermarksWithWatermarkAlignment"
    return "WatermarkStrategy" if strategy.idle_timeout_ms is None else "WatermarkStrategyWithIdleness"


def _fields_of(strategy: WatermarkStrategy) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if strategy.idle_timeout_ms is not None:
        fields["idlenessTimeout"] = _JavaDuration(strategy.idle_timeout_ms)
    if strategy.alignment is not None:
        fields["alignmentParameters"] = JavaView(
            "WatermarkAlignmentParams",
            watermarkGroup=strategy.alignment.group,
            maxAllowedWatermarkDrift=strategy.alignment.max_drift_ms,
            updateInterval=strategy.alignment.update_interval_ms,
        )
    return fields


class _JavaDuration:
    def __init__(self, millis: int) -> None:
        self._millis = millis

    def toMillis(self) -> int:
        return self._millis


def sequence_view(source: NumberSequenceSource) -> JavaView:
    """The bounds of a sequence."""
    return JavaView("NumberSequenceSource", **{"from": source._start, "to": source._end})


def file_source_view(source: FileSource[Any]) -> JavaView:
    """The paths that a source monitors, and the interval."""
    monitoring = source._monitoring
    assert monitoring is not None
    # The test makes a Duration of the interval, as PyFlink does of Java's: ours takes nanoseconds.
    settings = JavaView("ContinuousEnumerationSettings", discoveryInterval=int(monitoring.interval_s * 1e9))
    return JavaView("FileSource", continuousEnumerationSettings=settings, inputPaths=monitoring.paths)


class JavaClass:
    """A class that was loaded by its name, for its fields."""

    def __init__(self, name: str) -> None:
        self._name = name

    def getDeclaredField(self, name: str) -> JavaField:
        """A field, by its name."""
        return JavaField(name)


class JavaField:
    """A field of a Java class."""

    def __init__(self, name: str) -> None:
        self._name = name

    def setAccessible(self, accessible: bool) -> None:
        """Allow to read it, which it always is here."""

    def get(self, view: JavaView) -> Any:
        """The field's value in an object."""
        return view.fields[self._name]


def is_instance_of(view: JavaView, java_class: Any) -> bool:
    """Whether an object is of a class, given as a dotted name."""
    return str(java_class).rpartition(".")[2] == view.java_class


def get_field_value(view: JavaView, name: str) -> Any:
    """The value of a field."""
    return view.fields[name]
