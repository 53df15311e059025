"""The layout of checkpoints on disk (I14). Only this module builds and parses paths.

    <directory>/<job name>/owners/<attempt>                        a claim; the newest owner may publish and delete
    <directory>/<job name>/<timeline>/_begun                       the checkpoint that the timeline's run began from
    <directory>/<job name>/<timeline>/_completed                   says that the run has completed a checkpoint
    <directory>/<job name>/<timeline>/chk-<n>/_metadata            a checkpoint, complete when this is there
    <directory>/<job name>/<timeline>/chk-<n>/_stopped             the savepoint that the job was stopped with
    <directory>/<job name>/<timeline>/shared/<n>-<attempt>-<operator>-<subtask>.state
    <directory>/<job name>/_history/<time>-<job id>.json           what people saw of a run of the job, when it is over
    <directory>/<job name>/_replay/<time>-<attempt>-<chain>-<subtask>.recording    the input of a task that failed
    <directory>/<job name>/_replay/<time>-<attempt>-<chain>-<subtask>.job          the job's code, as it was shipped
    <directory>/savepoint-<job id>-<random>/_metadata              a savepoint, with its state files beside it

A manifest names state files relative to its root: the timeline's folder, or the savepoint's.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from typing import Final

from rekindle.checkpoint.store.port import Store
from rekindle.errors import StoreError

METADATA: Final = "_metadata"
STOPPED: Final = "_stopped"
BEGUN: Final = "_begun"
COMPLETED: Final = "_completed"
_SHARED: Final = "shared"
_HISTORY: Final = "_history"
_REPLAY: Final = "_replay"
_RECORDING: Final = ".recording"
_SHIPPED_JOB: Final = ".job"
_OWNERS: Final = "owners"
_ATTEMPT_DIGITS: Final = 8
_LONGEST_NAME: Final = 100
_SHORT_JOB_ID: Final = 6

_PLAIN: Final = re.compile(rb"[A-Za-z0-9_.-]")
_CHECKPOINT: Final = re.compile(r"chk-(\d+)")
_STATE_FILE: Final = re.compile(r"(\d+)-(\d+)-(.+)-(\d+)\.state")
_TIMELINE: Final = re.compile(r"\d{8,}-[0-9a-f]{8}")
_PARTIAL: Final = re.compile(r"\.[0-9a-f]{8}\.part$")


@dataclass(frozen=True, order=True)
class StateFileName:
    """The parsed name of a state file.

    >>> StateFileName.parse("shared/7-2-ab12-0.state")
    StateFileName(checkpoint_id=7, attempt=2, operator='ab12', subtask=0)
    >>> str(StateFileName.of(7, 2, "my operator", 0))
    '7-2-my=20operator-0.state'
    """

    checkpoint_id: int
    attempt: int
    operator: str  # the escaped uid
    subtask: int

    def __str__(self) -> str:
        return f"{self.checkpoint_id}-{self.attempt}-{self.operator}-{self.subtask}.state"

    @classmethod
    def of(cls, checkpoint_id: int, attempt: int, uid: str, subtask: int) -> StateFileName:
        """The file that a subtask of an operator writes for a checkpoint."""
        return cls(checkpoint_id, attempt, escaped(uid), subtask)

    @classmethod
    def parse(cls, path: str) -> StateFileName | None:
        """Parse a path, also of a file that a crash left half written; None if it is not a state file."""
        match = _STATE_FILE.fullmatch(without_partial(path).rpartition("/")[2])
        if match is None:
            return None
        checkpoint_id, attempt, operator, subtask = match.groups()
        return cls(int(checkpoint_id), int(attempt), operator, int(subtask))


@dataclass(frozen=True)
class CheckpointPath:
    """The parsed folder of a checkpoint.

    >>> CheckpointPath.parse("orders/00000001-0a1b2c3d/chk-7/_metadata")
    CheckpointPath(job='orders', timeline='00000001-0a1b2c3d', checkpoint_id=7)
    """

    job: str  # the folder: the escaped name
    timeline: str
    checkpoint_id: int

    def __str__(self) -> str:
        return "/".join(filter(None, (self.job, self.timeline, f"chk-{self.checkpoint_id}")))

    @property
    def order(self) -> tuple[tuple[int, str], int]:
        """Sorts the checkpoints of a job: by timeline, then by id."""
        return timeline_order(self.timeline), self.checkpoint_id

    @classmethod
    def parse(cls, path: str) -> CheckpointPath | None:
        """Parse the path of a checkpoint or of its `_metadata`, with or without the folders above; else None."""
        parts = path.removesuffix("/" + METADATA).split("/")
        match = _CHECKPOINT.fullmatch(parts[-1])
        if match is None:
            return None
        timeline = parts[-2] if len(parts) > 1 else ""
        return cls("/".join(parts[:-2]), timeline, int(match[1]))


def escaped(name: str) -> str:
    """Escape a name for use as a folder or in a file name: reversible unless it is very long, and never a path.

    >>> escaped("orders v1/EU"), escaped(".."), len(escaped("x" * 1000))
    ('orders=20v1=2FEU', '=2E.', 117)
    """
    data = name.encode("utf-8", "surrogatepass")
    text = "".join(chr(byte) if _PLAIN.match(bytes([byte])) else f"={byte:02X}" for byte in data)
    if text.startswith("."):
        text = "=2E" + text[1:]
    if len(text) > _LONGEST_NAME:
        text = f"{text[:_LONGEST_NAME]}={hashlib.blake2b(data, digest_size=8).hexdigest()}"
    return text or "="


def new_timeline(attempt: int) -> str:
    """A new timeline's id: ordered by the attempt that begins it, and unique even in a directory that was emptied,
    because external systems of sinks remember it.

    >>> new_timeline(12).startswith("00000012-")
    True
    """
    return f"{attempt:0{_ATTEMPT_DIGITS}d}-{secrets.token_hex(4)}"


def timeline_of(root: str) -> str:
    """The timeline of a folder that `timeline_folder` gave.

    >>> timeline_of(timeline_folder("orders", "00000001-0a1b2c3d"))
    '00000001-0a1b2c3d'
    """
    return root.rpartition("/")[2]


def job_folder(job_name: str) -> str:
    """The folder of a job."""
    return escaped(job_name)


def timeline_folder(job_name: str, timeline: str) -> str:
    """The folder of a timeline: the root of its manifests."""
    return f"{job_folder(job_name)}/{timeline}"


def checkpoint_folder(job_name: str, timeline: str, checkpoint_id: int) -> str:
    """The folder of a checkpoint, as users name it.

    >>> checkpoint_folder("orders", "00000001-0a1b2c3d", 7)
    'orders/00000001-0a1b2c3d/chk-7'
    """
    return str(CheckpointPath(job_folder(job_name), timeline, checkpoint_id))


def metadata_path(folder: str) -> str:
    """The path of the manifest in a checkpoint's or savepoint's folder."""
    return f"{folder}/{METADATA}" if folder else METADATA


def stopped_path(folder: str) -> str:
    """The path of the note of a stop in a checkpoint's folder."""
    return f"{folder}/{STOPPED}"


def begun_path(timeline: str) -> str:
    """The path of the note of the beginning in a timeline's folder."""
    return below(timeline, BEGUN)


def completed_path(timeline: str) -> str:
    """The path of the note that a checkpoint has completed in a timeline's folder."""
    return below(timeline, COMPLETED)


def shared_reference(name: StateFileName) -> str:
    """A state file of a timeline, relative to the manifest's root."""
    return f"{_SHARED}/{name}"


def savepoint_reference(name: StateFileName) -> str:
    """A state file of a savepoint, relative to the manifest's root.

    >>> name = StateFileName.of(7, 2, "ab12", 0)
    >>> savepoint_reference(name), shared_reference(name)
    ('7-2-ab12-0.state', 'shared/7-2-ab12-0.state')
    """
    return str(name)


def below(root: str, reference: str) -> str:
    """A manifest's reference as a path of the store."""
    return f"{root}/{reference}" if root else reference


def root_of(folder: str) -> str:
    """The root that a checkpoint's or savepoint's manifest names its files from.

    >>> root_of("orders/00000001-0a1b2c3d/chk-7"), root_of("savepoint-0a1b2c-1d2e3f")
    ('orders/00000001-0a1b2c3d', 'savepoint-0a1b2c-1d2e3f')
    """
    checkpoint = CheckpointPath.parse(folder)
    return folder if checkpoint is None else "/".join(filter(None, (checkpoint.job, checkpoint.timeline)))


def new_savepoint_folder(job_id: str) -> str:
    """A new, unique folder name for a savepoint.

    >>> new_savepoint_folder("0a1b2c3d" * 4).startswith("savepoint-0a1b2c-")
    True
    """
    return f"savepoint-{job_id[:_SHORT_JOB_ID]}-{secrets.token_hex(6)}"


def owners_folder(job_name: str) -> str:
    """The folder of the claims of a job's drivers."""
    return f"{job_folder(job_name)}/{_OWNERS}"


def history_folder(job_name: str) -> str:
    """The folder of the histories of a job's runs."""
    return f"{job_folder(job_name)}/{_HISTORY}"


def history_path(job_name: str, started_ms: int, job_id: str) -> str:
    """The path of a run's history; runs sort by their start.

    >>> history_path("orders", 1794771135275, "0a1b2c3d" * 4)
    'orders/_history/1794771135275-0a1b2c3d0a1b2c3d0a1b2c3d0a1b2c3d.json'
    """
    return f"{history_folder(job_name)}/{started_ms:013d}-{job_id}.json"


def is_history(path: str) -> bool:
    """Whether a path is the history of a run.

    >>> is_history("orders/_history/1794771135275-0a1b2c3d.json"), is_history("orders/owners/00000003")
    (True, False)
    """
    folder, _, name = path.rpartition("/")
    return folder.rpartition("/")[2] == _HISTORY and name.endswith(".json")


def recordings_folder(job_name: str) -> str:
    """The folder of the recorded inputs of a job's failed tasks."""
    return f"{job_folder(job_name)}/{_REPLAY}"


def recording_path(job_name: str, failed_ms: int, attempt: int, chain: int, subtask: int) -> str:
    """The path of the recorded input of a failed task; recordings sort by the time of the failure.

    >>> recording_path("orders", 1794771135275, 2, 1, 0)
    'orders/_replay/1794771135275-2-1-0.recording'
    """
    return f"{recordings_folder(job_name)}/{failed_ms:013d}-{attempt}-{chain}-{subtask}{_RECORDING}"


def is_recording(path: str) -> bool:
    """Whether a path is the recorded input of a failed task.

    >>> is_recording("orders/_replay/1794771135275-2-1-0.recording"), is_recording("orders/owners/00000003")
    (True, False)
    """
    return path.endswith(_RECORDING) and path.rpartition("/")[0].rpartition("/")[2] == _REPLAY


def shipped_job_path(recording: str) -> str:
    """The path of the code that the failed job had shipped, beside its recording.

    >>> shipped_job_path("orders/_replay/1794771135275-2-1-0.recording")
    'orders/_replay/1794771135275-2-1-0.job'
    """
    return recording.removesuffix(_RECORDING) + _SHIPPED_JOB


def owner_path(job_name: str, attempt: int) -> str:
    """The path of an attempt's claim.

    >>> owner_path("orders", 3), owner_attempt("orders/owners/00000003")
    ('orders/owners/00000003', 3)
    """
    return f"{owners_folder(job_name)}/{attempt:0{_ATTEMPT_DIGITS}d}"


def owner_attempt(path: str) -> int | None:
    """The attempt of a claim's path; None if it is not a claim."""
    name = path.rpartition("/")[2]
    return int(name) if name.isdecimal() else None


def claim_of(path: str) -> tuple[str, int] | None:
    """The job's folder and the attempt of a claim's path; None if it is not a claim.

    >>> claim_of("orders/owners/00000003"), claim_of("orders/00000001-0a1b2c3d/chk-7/_metadata")
    (('orders', 3), None)
    """
    folder, _, name = path.rpartition("/")
    job = folder.removesuffix(f"/{_OWNERS}")
    return (job, int(name)) if job != folder and name.isdecimal() else None


def is_partial(path: str) -> bool:
    """Whether this is a file that a crash left half written.

    >>> is_partial("orders/t/chk-1/_metadata.0a1b2c3d.part"), is_partial("orders/t/chk-1/_metadata")
    (True, False)
    """
    return _PARTIAL.search(path) is not None


def without_partial(path: str) -> str:
    """The final path of a half-written file.

    >>> without_partial("orders/owners/00000003.0a1b2c3d.part")
    'orders/owners/00000003'
    """
    return _PARTIAL.sub("", path)


def is_timeline(name: str) -> bool:
    """Whether a folder of a job is a timeline.

    >>> is_timeline("00000001-0a1b2c3d"), is_timeline("owners")
    (True, False)
    """
    return _TIMELINE.fullmatch(name) is not None


def timeline_order(timeline: str) -> tuple[int, str]:
    """Sorts timelines by the attempt that began them."""
    digits = timeline.partition("-")[0]
    return (int(digits) if digits.isdecimal() else 0, timeline)


def url_of(store: Store, path: str) -> str:
    """The URL of a path in a store, as users write it.

    >>> from rekindle.checkpoint.store.open_store import open_store
    >>> url_of(open_store("file:///checkpoints"), "orders/00000001-0a1b2c3d/chk-7")
    'file:///checkpoints/orders/00000001-0a1b2c3d/chk-7'
    """
    return store.url + path if store.url.endswith("/") else f"{store.url}/{path}"


def checked_path(path: str) -> str:
    """Check that a path stays below a store's root, and return it: paths in manifests come from outside.

    >>> checked_path("orders/chk-1/_metadata")
    'orders/chk-1/_metadata'
    >>> checked_path("../secrets")
    Traceback (most recent call last):
    rekindle.errors.StoreError: '../secrets' is not a path inside a checkpoint store.
    """
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\\" in path or not path.isprintable():
        raise StoreError(f"{path!r} is not a path inside a checkpoint store.")
    return path
