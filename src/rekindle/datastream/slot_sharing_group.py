"""Slot sharing groups and memory sizes. Operators of different groups do not chain."""

from __future__ import annotations

from functools import total_ordering

from rekindle.common.java_names import RefusesJavaNames
from rekindle.errors import GraphError


@total_ordering
class MemorySize(RefusesJavaNames):
    """A number of bytes.

    >>> MemorySize.of_mebi_bytes(2).get_kibi_bytes()
    2048
    """

    def __init__(self, bytes_size: int) -> None:
        if not isinstance(bytes_size, int) or bytes_size < 0:
            raise GraphError(f"MemorySize needs a number of bytes of 0 or more, not {bytes_size!r}.")
        self._bytes = bytes_size

    @staticmethod
    def of_mebi_bytes(mebi_bytes: int) -> MemorySize:
        """Return a size given in units of 2**20 bytes."""
        return MemorySize(mebi_bytes << 20)

    def get_bytes(self) -> int:
        """Return the size in bytes."""
        return self._bytes

    def get_kibi_bytes(self) -> int:
        """Return the size in units of 2**10 bytes, rounded down."""
        return self._bytes >> 10

    def get_mebi_bytes(self) -> int:
        """Return the size in units of 2**20 bytes, rounded down."""
        return self._bytes >> 20

    def get_gibi_bytes(self) -> int:
        """Return the size in units of 2**30 bytes, rounded down."""
        return self._bytes >> 30

    def get_tebi_bytes(self) -> int:
        """Return the size in units of 2**40 bytes, rounded down."""
        return self._bytes >> 40

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemorySize) and self._bytes == other._bytes

    def __lt__(self, other: MemorySize) -> bool:
        if not isinstance(other, MemorySize):
            return NotImplemented
        return self._bytes < other._bytes

    def __hash__(self) -> int:
        return hash(self._bytes)

    def __le__(self, other: MemorySize) -> bool:
        if not isinstance(other, MemorySize):
            return NotImplemented
        return self._bytes <= other._bytes

    def __repr__(self) -> str:
        return f"MemorySize(bytes_size={self._bytes})"

    def __str__(self) -> str:
        """The size as Java writes it: in the largest unit that divides it.

        >>> str(MemorySize.of_mebi_bytes(100)), str(MemorySize(1500))
        ('100 mb', '1500 bytes')
        """
        fitting = [power for power in range(len(_UNITS)) if self._bytes % (1 << 10 * power) == 0]
        power = fitting[-1] if len(fitting) < len(_UNITS) else 0  # as in Java: whole terabytes are written in bytes
        return f"{self._bytes >> 10 * power} {_UNITS[power]}"


_UNITS = ("bytes", "kb", "mb", "gb", "tb")


class SlotSharingGroup(RefusesJavaNames):
    """A named group with requested resources. They are only shown: Spark's executors set the real limits.

    >>> group = SlotSharingGroup.builder("heavy").set_cpu_cores(1.0).set_task_heap_memory_mb(100).build()
    >>> group.get_name(), group.get_cpu_cores()
    ('heavy', 1.0)
    """

    def __init__(
        self,
        name: str,
        cpu_cores: float | None = None,
        task_heap_memory: MemorySize | None = None,
        task_off_heap_memory: MemorySize | None = None,
        managed_memory: MemorySize | None = None,
        external_resources: dict[str, float] | None = None,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise GraphError(f"A slot sharing group needs a name: a non-empty string, not {name!r}.")
        self._name = name
        self._cpu_cores = cpu_cores
        self._task_heap_memory = task_heap_memory
        self._task_off_heap_memory = task_off_heap_memory
        self._managed_memory = managed_memory
        self._external_resources = dict(external_resources or {})

    def get_name(self) -> str:
        """Return the group's name."""
        return self._name

    def get_managed_memory(self) -> MemorySize | None:
        """Return the managed memory, or None."""
        return self._managed_memory

    def get_task_heap_memory(self) -> MemorySize | None:
        """Return the task heap memory, or None."""
        return self._task_heap_memory

    def get_task_off_heap_memory(self) -> MemorySize | None:
        """Return the task off-heap memory, or None."""
        return self._task_off_heap_memory

    def get_cpu_cores(self) -> float | None:
        """Return the CPU cores, or None."""
        return self._cpu_cores

    def get_external_resources(self) -> dict[str, float]:
        """Return other resources by name."""
        return dict(self._external_resources)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SlotSharingGroup) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(self._name)

    @staticmethod
    def builder(name: str) -> SlotSharingGroup.Builder:
        """Return a builder of a group with this name."""
        return SlotSharingGroup.Builder(name)

    class Builder:
        """Builds a slot sharing group."""

        def __init__(self, name: str) -> None:
            self._name = name
            self._cpu_cores: float | None = None
            self._task_heap_memory: MemorySize | None = None
            self._task_off_heap_memory: MemorySize | None = None
            self._managed_memory: MemorySize | None = None
            self._external_resources: dict[str, float] = {}

        def set_cpu_cores(self, cpu_cores: float) -> SlotSharingGroup.Builder:
            """Request CPU cores."""
            if not isinstance(cpu_cores, int | float) or isinstance(cpu_cores, bool) or not cpu_cores > 0:
                raise GraphError(
                    f"Slot sharing group '{self._name}': the CPU cores must be a number above 0, not {cpu_cores!r}."
                )
            self._cpu_cores = cpu_cores
            return self

        def set_task_heap_memory(self, task_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Request task heap memory."""
            if not isinstance(task_heap_memory, MemorySize) or task_heap_memory <= MemorySize(0):
                raise GraphError(
                    f"Slot sharing group '{self._name}': the task heap memory must be more than 0 bytes, "
                    f"not {task_heap_memory!r}."
                )
            self._task_heap_memory = task_heap_memory
            return self

        def set_task_heap_memory_mb(self, task_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            """Request task heap memory in MiB."""
            return self.set_task_heap_memory(MemorySize.of_mebi_bytes(task_heap_memory_mb))

        def set_task_off_heap_memory(self, task_off_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Request task off-heap memory."""
            self._task_off_heap_memory = task_off_heap_memory
            return self

        def set_task_off_heap_memory_mb(self, task_off_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            """Request task off-heap memory in MiB."""
            return self.set_task_off_heap_memory(MemorySize.of_mebi_bytes(task_off_heap_memory_mb))

        def set_managed_memory(self, managed_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Request managed memory."""
            self._managed_memory = managed_memory
            return self

        def set_managed_memory_mb(self, managed_memory_mb: int) -> SlotSharingGroup.Builder:
            """Request managed memory in MiB."""
            return self.set_managed_memory(MemorySize.of_mebi_bytes(managed_memory_mb))

        def set_external_resource(self, name: str, value: float) -> SlotSharingGroup.Builder:
            """Request another resource by name."""
            self._external_resources[name] = value
            return self

        def build(self) -> SlotSharingGroup:
            """Return the group. As in Flink, resources without both CPU cores and task heap memory are refused."""
            memory = (self._task_heap_memory, self._task_off_heap_memory, self._managed_memory)
            if self._cpu_cores is not None and self._task_heap_memory is not None:
                return SlotSharingGroup(self._name, self._cpu_cores, *memory, self._external_resources)
            if self._cpu_cores is not None or any(memory) or self._external_resources:
                raise GraphError(
                    f"Slot sharing group '{self._name}' asks for resources: set both CPU cores and task heap memory."
                )
            return SlotSharingGroup(self._name)
