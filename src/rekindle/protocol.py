"""Every message between driver, pump and slot. Neither side imports the other.

Control messages travel over one connection per slot (`wire.Connection`), msgpack with a tag each.
A pump opens a connection per (attempt, epoch, stage) with `PumpHello`, streams chunks in, and reads chunks out.
"""

from __future__ import annotations

import struct
from enum import StrEnum
from typing import ClassVar

import msgspec

from rekindle.metrics import MetricReading
from rekindle.wire import TlsFiles


class Message(msgspec.Struct, tag=True, frozen=True):
    """Base of the control messages."""


# -- driver -> slot ---------------------------------------------------------------------------------------------------


class Storage(msgspec.Struct, frozen=True):
    """The place of a slot's snapshots: below `root` in the store at `url`; without a URL, inside its answer."""

    url: str | None
    root: str
    max_inline_bytes: int


class AssignedSplits(msgspec.Struct, frozen=True):
    """Splits of a source for one of its subtasks: encoded by `split_codec`."""

    uid: str
    subtask: int
    splits: bytes


class Deploy(Message, frozen=True):
    """Build the tasks and open the functions. `program` is the cloudpickled `graph.shipping.ShippedJob`.

    `restores` are encoded `checkpoint.rescale.SubtaskShare`s of the subtasks that this slot hosts, `splits` those of
    its sources that begin without state, or whose state may lack some. `store_options` are the settings of object
    stores by kind, with their secrets: they are in this message and in no other.
    """

    program: bytes
    storage: Storage | None = None
    restored_id: int | None = None
    restore_url: str | None = None
    restore_root: str = ""
    restores: list[bytes] = []
    store_options: dict[str, dict[str, str]] = {}
    splits: list[AssignedSplits] = []
    claimed_ms: int = 0

    def __repr__(self) -> str:
        return f"Deploy({len(self.program)} bytes, restored_id={self.restored_id})"


class AddSplits(Message, frozen=True):
    """The driver has discovered splits of a source: read those that are not known."""

    added: AssignedSplits


class CheckpointCompleted(Message, frozen=True):
    """The checkpoint is durable: notify the listeners; with `acknowledge`, answer `Committed` when that is done.

    With `sources_wait`, sources hear of it with `CheckpointCommitted`, and tasks with committing sinks answer
    `SinksCommitted` first.
    """

    id: int
    acknowledge: bool
    sources_wait: bool = False


class CheckpointCommitted(Message, frozen=True):
    """Every sink has committed the checkpoint: notify the sources; with `acknowledge`, answer `Committed`."""

    id: int
    acknowledge: bool


class CheckpointAborted(Message, frozen=True):
    """The checkpoint was aborted, as if it had never been triggered."""

    id: int


class CancelTasks(Message, frozen=True):
    """Stop the sources and leave the current batch; `CloseTasks` follows."""


class CloseTasks(Message, frozen=True):
    """Close every function, answer with `Closed`, then end the process."""


class DriverHeartbeat(Message, frozen=True):
    """The driver is alive."""


# -- slot -> driver ---------------------------------------------------------------------------------------------------


class SlotHello(Message, frozen=True):
    """First message of a slot: its identity, and the addresses at which its pump server listens."""

    job_id: str
    attempt: int
    slot: int
    pid: int
    host: str
    boot_id: str
    unix_path: str
    tcp_port: int


class Lifeline(Message, frozen=True):
    """First message of a guardian's connection: when it closes, the slot dies."""

    job_id: str
    attempt: int
    slot: int


class SlotEnded(Message, frozen=True):
    """Last message of a guardian's connection: `how` its slot has ended, or why it must end, as text."""

    how: str


class Deployed(Message, frozen=True):
    """Every function of this slot is open."""


class SlotHeartbeat(Message, frozen=True):
    """The slot is alive: its resident memory, and the processor time that it has used so far."""

    memory_bytes: int = 0
    cpu_s: float = 0.0


class Ready(Message, frozen=True):
    """Some task of this slot has work: an epoch is worth running."""


class EdgeCount(msgspec.Struct, frozen=True, array_like=True, order=True):
    """Records that went over one channel in one epoch (I3)."""

    edge: int
    source: int
    target: int
    records: int


class TaskReport(msgspec.Struct, frozen=True, array_like=True):
    """One task's work in one epoch."""

    chain: int
    subtask: int
    records_in: int  # from the source, or from other chains
    records_sunk: int  # that reached a sink of this chain
    watermark: int
    finished: bool
    busy_ms: float
    #: Records that wait in front of the task because the epoch's time was over.
    in_flight: int = 0
    #: Readings of its functions' metrics; empty if the last ones were sent a short time ago.
    metrics: list[MetricReading] = []
    #: The watermark of its source by alignment group; a source that holds nobody back is left out.
    aligned: dict[str, int] = {}
    #: Records handed on over each edge inside the chain.
    passed: dict[int, int] = {}
    #: The watermark of its input, that is of its first operator.
    input_watermark: int = -(2**63)
    #: Whether its source, or what waits in front of it, has more than it took.
    backlog: bool = False
    #: The stage that the reader of its source has reached, if the source has stages (`HybridSource`).
    source_stage: int | None = None


class StageReport(Message, frozen=True):
    """A slot finished its part of a stage; sent before its pump is released (I2)."""

    epoch: int
    stage: int
    sent: list[EdgeCount]
    received: list[EdgeCount]
    tasks: list[TaskReport]
    more: bool


class Verdict(StrEnum):
    """The kind of a failure that no restart can heal."""

    #: The checkpoint that the task was to restore is damaged (I16).
    DAMAGED = "damaged"
    #: The program cannot take the state that was saved.
    INCOMPATIBLE = "incompatible"
    #: The store refuses, and will refuse again.
    STORE = "store"


class TaskFailed(Message, frozen=True):
    """User code or the engine failed in a task. `traceback` is the user's own, from their first frame."""

    task: str
    operator: str
    subtask: int
    traceback: str
    summary: str
    record: str | None
    #: Set if no restart can heal the failure; then `sentence` says what to do.
    verdict: Verdict | None = None
    sentence: str = ""
    #: The URL of the task's recorded input; or why there is none, if input is recorded at all.
    recording: str | None = None
    not_recorded: str = ""


class LogLine(Message, frozen=True):
    """A line that user code printed or logged in a slot."""

    source: str
    stream: str
    level: int
    logger: str
    text: str


class WrittenOperator(msgspec.Struct, frozen=True, array_like=True):
    """One operator's written snapshot: its encoded `checkpoint.manifest.SubtaskState`, and the time that it took."""

    uid: str
    state: bytes
    sync_ms: float
    async_ms: float


class CheckpointAcknowledged(Message, frozen=True):
    """A task's snapshot is in the store."""

    checkpoint: int
    chain: int
    subtask: int
    operators: list[WrittenOperator]
    start_delay_ms: float
    sync_ms: float
    async_ms: float


class CheckpointDeclined(Message, frozen=True):
    """A task's snapshot failed; processing goes on (I19)."""

    checkpoint: int
    chain: int
    subtask: int
    message: str
    asynchronous: bool
    #: The user's own traceback, when their code was the cause.
    traceback: str = ""


class SinksCommitted(Message, frozen=True):
    """The sinks of a task have committed everything up to a checkpoint."""

    checkpoint: int
    chain: int
    subtask: int


class Committed(Message, frozen=True):
    """A task has notified its listeners of the checkpoint with which the job ends."""

    checkpoint: int
    chain: int
    subtask: int


class Closed(Message, frozen=True):
    """Every function is closed: the accumulators by name, and the last readings of the metrics."""

    accumulators: bytes
    errors: list[str] = []
    metrics: list[MetricReading] = []


SlotMessage = (
    SlotHello
    | Lifeline
    | SlotEnded
    | Deployed
    | SlotHeartbeat
    | Ready
    | StageReport
    | TaskFailed
    | LogLine
    | CheckpointAcknowledged
    | CheckpointDeclined
    | SinksCommitted
    | Committed
    | Closed
)
DriverMessage = (
    Deploy
    | AddSplits
    | CancelTasks
    | CloseTasks
    | DriverHeartbeat
    | CheckpointCompleted
    | CheckpointCommitted
    | CheckpointAborted
)

_encoder = msgspec.msgpack.Encoder()
_slot_decoder: msgspec.msgpack.Decoder[SlotMessage] = msgspec.msgpack.Decoder(SlotMessage)
_driver_decoder: msgspec.msgpack.Decoder[DriverMessage] = msgspec.msgpack.Decoder(DriverMessage)


def encode(message: Message) -> bytes:
    """One control message as bytes."""
    return _encoder.encode(message)


def decode_from_slot(data: bytes) -> SlotMessage:
    """A message that a slot sent to the driver."""
    return _slot_decoder.decode(data)


def decode_from_driver(data: bytes) -> DriverMessage:
    """A message that the driver sent to a slot."""
    return _driver_decoder.decode(data)


# -- pump <-> slot ----------------------------------------------------------------------------------------------------


class CheckpointOrder(msgspec.Struct, frozen=True):
    """The barrier that an epoch carries. Deltas stand on `base_id`, the last completed checkpoint (I12).

    A savepoint is written below `storage` instead of the job's own. With `drain` the sources end at this barrier.
    """

    id: int
    timestamp_ms: int
    base_id: int | None = None
    savepoint: bool = False
    storage: Storage | None = None
    drain: bool = False


class EpochTime(msgspec.Struct, frozen=True):
    """With unaligned checkpoints: when the epoch began, on the driver's clock, and how long its tasks take input.

    Records that still wait in front of a task after that stay there.
    """

    began_ms: int
    leave_after_ms: float

    #: Each stage gets at least this share of the time, also when it is over or another machine's clock is ahead.
    LEAST_SHARE: ClassVar[float] = 0.1

    def left_ms(self, now_ms: int) -> float:
        """How long a stage that begins now may take input.

        >>> time = EpochTime(began_ms=1000, leave_after_ms=500)
        >>> time.left_ms(1200), time.left_ms(9000), time.left_ms(0)
        (300.0, 50.0, 500.0)
        """
        left_ms = self.began_ms + self.leave_after_ms - now_ms
        return float(min(self.leave_after_ms, max(self.LEAST_SHARE * self.leave_after_ms, left_ms)))


class PumpHello(msgspec.Struct, frozen=True):
    """Opens one stage of one epoch at one slot. A slot refuses an (attempt, epoch, stage) that it has seen (I3)."""

    attempt: int
    epoch: int
    stage: int
    max_records: int
    target_ms: float
    checkpoint: CheckpointOrder | None = None
    leave: EpochTime | None = None
    #: The lowest watermark of each alignment group.
    aligned: dict[str, int] = {}
    #: The nodes at the heads of chains that had input left after the epoch before, and sources that are not read yet.
    backlogged: list[int] = []
    #: The stage that all readers of a source have reached, by the source's node.
    source_stages: dict[int, int] = {}


class PumpReply(msgspec.Struct, frozen=True):
    """The slot's answer to `PumpHello`: `refused` is the reason, or None."""

    refused: str | None = None


_pump_hello = msgspec.msgpack.Decoder(PumpHello)
_pump_reply = msgspec.msgpack.Decoder(PumpReply)


def encode_pump(message: PumpHello | PumpReply) -> bytes:
    """A pump handshake message as bytes."""
    return _encoder.encode(message)


def decode_pump_hello(data: bytes) -> PumpHello:
    """Decode a `PumpHello`, in the slot."""
    return _pump_hello.decode(data)


def decode_pump_reply(data: bytes) -> PumpReply:
    """Decode a `PumpReply`, in the pump."""
    return _pump_reply.decode(data)


#: The destination of chunks for the driver: pumps pass them on from stage to stage, slots never see them.
TO_DRIVER = 0xFFFF_FFFF
#: The prefix of a frame that a slot sends to its pump, `<u32 destination slot><chunk>`: slot or `TO_DRIVER`.
DESTINATION = struct.Struct("<I")
#: An empty frame ends the stage.
END_OF_STAGE = b""


class CopiesPlace(msgspec.Struct, frozen=True):
    """Local copies of state: the folder for them, and the driver's port for connections that live as long as the job.

    The driver names a directory, or none; the process that starts the slot makes the job's folder in it.
    """

    folder: str
    port: int
    secret: bytes


class Heartbeat(msgspec.Struct, frozen=True):
    """How often driver and slot tell each other that they are alive, and how long each waits for the other."""

    interval_ms: int
    timeout_ms: int

    @property
    def interval_s(self) -> float:
        """The interval in seconds."""
        return self.interval_ms / 1000

    @property
    def timeout_s(self) -> float:
        """The timeout in seconds."""
        return self.timeout_ms / 1000


class SlotLaunch(msgspec.Struct, frozen=True):
    """The settings of a slot process until it connects; passed on its standard input, never on a command line."""

    job_id: str
    job_name: str
    attempt: int
    slot: int
    slots: int
    driver_host: str
    driver_port: int
    secret: bytes
    heartbeat: Heartbeat
    python_path: list[str] = []
    loopback_only: bool = True
    restarts: int = 0  # functions see it as the attempt number, as in Flink
    executor_pid: int | None = None
    directory: str = ""  # the slot's private directory: the process that starts it makes it, its guardian removes it
    tls: TlsFiles | None = None  # for its TCP connections; the files are on every host
    copies: CopiesPlace | None = None  # None: no local copies of state
    #: The interpreter of the slot: a path on its host, or one below Spark's directory of files. None: Spark's own.
    python: str | None = None


def encode_launch(launch: SlotLaunch) -> bytes:
    """The launch record as bytes for standard input."""
    return _encoder.encode(launch)


_launch_decoder = msgspec.msgpack.Decoder(SlotLaunch)


def decode_launch(data: bytes) -> SlotLaunch:
    """The launch record from standard input."""
    return _launch_decoder.decode(data)
