"""Flink's answers about task managers: here, the slots of the jobs, with the last lines of their output."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from rekindle.monitor.job_view import JobView, LogLineView, SlotView
from rekindle.web.flink_values import Json
from rekindle.web.vertex_answers import tasks_by_slot

#: The files of a slot, as Flink names those of a task manager.
LOG, STDOUT = "taskmanager.log", "taskmanager.out"
_MEBIBYTE = 1 << 20
_JVM_METRICS = (
    *("heapUsed", "heapCommitted", "heapMax", "nonHeapUsed", "nonHeapCommitted", "nonHeapMax"),
    *("directCount", "directUsed", "directMax", "mappedCount", "mappedUsed", "mappedMax"),
    *("nettyShuffleMemorySegmentsAvailable", "nettyShuffleMemorySegmentsUsed", "nettyShuffleMemorySegmentsTotal"),
    *("nettyShuffleMemoryAvailable", "nettyShuffleMemoryUsed", "nettyShuffleMemoryTotal"),
)


def slots(views: Sequence[JobView]) -> Iterator[tuple[JobView, SlotView]]:
    """The slots of jobs that are not over."""
    return ((view, slot) for view in views if not view.ended for slot in view.slots)


def task_managers(views: Sequence[JobView]) -> Json:
    """`/taskmanagers`."""
    tasks = tasks_by_slot(views)
    return {"taskmanagers": [_slot(slot, tasks.get(slot.id, 0)) for _, slot in slots(views)]}


def _slot(slot: SlotView, tasks: int) -> Json:
    """A slot as a task manager with one slot. A slot has no memory of its own to divide: sizes are those in use."""
    used = slot.memory_bytes
    return {
        "id": slot.id,
        "path": f"slot_{slot.index}",
        "dataPort": -1,
        "jmxPort": -1,
        "timeSinceLastHeartbeat": slot.last_heartbeat_ms,
        "slotsNumber": 1,
        "freeSlots": 0,
        "assignedTasks": tasks,
        "totalResource": _resource(1.0, used),
        "freeResource": _resource(0.0, 0),
        "hardware": {
            "cpuCores": os.cpu_count() or 1,
            "physicalMemory": _physical_memory("SC_PHYS_PAGES"),
            "freeMemory": _physical_memory("SC_AVPHYS_PAGES"),
            "managedMemory": 0,
        },
        "memoryConfiguration": {
            "frameworkHeap": 0,
            "taskHeap": used,
            "frameworkOffHeap": 0,
            "taskOffHeap": 0,
            "networkMemory": 0,
            "managedMemory": 0,
            "jvmMetaspace": 0,
            "jvmOverhead": 0,
            "totalFlinkMemory": used,
            "totalProcessMemory": used,
        },
    }


def _resource(cores: float, used: int) -> Json:
    return {
        "cpuCores": cores,
        "taskHeapMemory": used // _MEBIBYTE,
        "taskOffHeapMemory": 0,
        "managedMemory": 0,
        "networkMemory": 0,
        "extendedResources": {},
    }


def _physical_memory(name: str) -> int:
    """The memory of the driver's machine."""
    try:
        return os.sysconf(name) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def task_manager(views: Sequence[JobView], view: JobView, slot: SlotView) -> Json:
    """`/taskmanagers/:taskmanagerid`."""
    tasks = tasks_by_slot(views).get(slot.id, 0)
    jvm = dict.fromkeys(_JVM_METRICS, 0)
    return {
        **_slot(slot, tasks),
        "allocatedSlots": [
            {"jobId": view.job_id, "resource": _resource(1.0, slot.memory_bytes), "assignedTasks": tasks}
        ],
        "metrics": {**jvm, "heapUsed": slot.memory_bytes, "heapCommitted": slot.memory_bytes, "garbageCollectors": []},
    }


def log_list(slot: SlotView) -> Json:
    """`/taskmanagers/:taskmanagerid/logs`: the lines that the driver has kept."""
    return {
        "logs": [
            {"name": name, "size": len(log_text(slot, name).encode()), "mtime": _modified_ms(slot, name)}
            for name in (LOG, STDOUT)
        ]
    }


def _lines(slot: SlotView, name: str) -> list[LogLineView]:
    return [line for line in slot.log if (line.stream == "stdout") == (name == STDOUT)]


def _modified_ms(slot: SlotView, name: str) -> int:
    return max((line.at_ms for line in _lines(slot, name)), default=slot.started_ms)


def log_text(slot: SlotView, name: str) -> str:
    """The lines of one of a slot's files."""
    return "".join(f"{_time(line.at_ms)} {line.source} {line.text}\n" for line in _lines(slot, name))


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
