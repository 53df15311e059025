"""The pump, inside the Spark task: carries chunks from Spark's shuffle into a slot, and the slot's chunks back.

A chunk in Spark is `<u32 destination slot><bytes>`, exactly the frame that the sending slot wrote, so that the pump
neither copies nor encodes. Chunks for the driver pass through the later stages' pumps and never reach a slot.

Spark's Python workers import this module for every task: it must stay light.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator

from rekindle.errors import ProtocolError, SlotLostError
from rekindle.protocol import DESTINATION, END_OF_STAGE, TO_DRIVER, PumpHello, decode_pump_reply, encode_pump
from rekindle.spark.worker_daemon import freeze_imports
from rekindle.wire import Connection, ConnectionClosedError, TlsFiles, connect_tcp, connect_unix, this_boot_id

_PREFIX_BYTES = DESTINATION.size
_DRIVER_PREFIX = DESTINATION.pack(TO_DRIVER)
#: How Spark's `PairwiseRDD` reads the key of a pair: a big-endian long.
SPARK_KEY = struct.Struct("!q")


class PumpTask:
    """The function of one stage's Spark tasks; partition i serves slot i.

    `slots` holds (host, boot id, unix path, tcp port) of each slot. A stage before a shuffle yields keys and chunks in
    turn, as Spark's `PairwiseRDD` reads them; the last stage yields the driver's chunks alone.
    """

    __slots__ = ("hello", "is_last", "secret", "slots", "tls")

    def __init__(
        self,
        hello: PumpHello,
        slots: tuple[tuple[str, str, str, int], ...],
        secret: bytes,
        is_last: bool,
        tls: TlsFiles | None = None,
    ) -> None:
        self.hello = hello
        self.slots = slots
        self.secret = secret
        self.is_last = is_last
        self.tls = tls

    def __call__(self, partition: int, chunks: Iterable[bytes]) -> Iterator[bytes]:
        freeze_imports()
        return self._pump(partition, chunks)

    def _pump(self, slot: int, chunks: Iterable[bytes]) -> Iterator[bytes]:
        own_key = SPARK_KEY.pack(slot)
        connection = self._open(slot)
        try:
            for chunk in chunks:
                if chunk[:_PREFIX_BYTES] == _DRIVER_PREFIX:
                    if not self.is_last:
                        yield own_key
                    yield chunk
                else:
                    assert len(chunk) > _PREFIX_BYTES, "an empty chunk would end the stage"
                    connection.send(memoryview(chunk)[_PREFIX_BYTES:])
            connection.send(END_OF_STAGE)
            while frame := connection.receive():
                (destination,) = DESTINATION.unpack_from(frame)
                if not self.is_last:
                    yield own_key if destination == TO_DRIVER else SPARK_KEY.pack(destination)
                else:
                    assert destination == TO_DRIVER, f"the last stage sent a chunk to slot {destination}"
                yield frame
        except OSError as error:
            raise SlotLostError(
                f"Slot {slot} went away in epoch {self.hello.epoch}, stage {self.hello.stage} ({_reason(error)})."
            ) from None
        finally:
            connection.close()

    def _open(self, slot: int) -> Connection:
        try:
            connection = connect_to_slot(*self.slots[slot], self.secret, self.tls)
        except OSError as error:
            raise SlotLostError(
                f"Slot {slot} on {self.slots[slot][0]} does not answer in epoch {self.hello.epoch},"
                f" stage {self.hello.stage} ({_reason(error)})."
            ) from None
        try:
            connection.send(encode_pump(self.hello))
            reply = decode_pump_reply(connection.receive())
        except OSError as error:
            connection.close()
            raise SlotLostError(
                f"Slot {slot} went away before epoch {self.hello.epoch}, stage {self.hello.stage} ({_reason(error)})."
            ) from None
        if reply.refused is not None:
            connection.close()
            raise ProtocolError(f"Slot {slot} refused: {reply.refused}")
        return connection


def connect_to_slot(
    host: str, boot_id: str, unix_path: str, tcp_port: int, secret: bytes, tls: TlsFiles | None = None
) -> Connection:
    """Connect to a slot's pump server: over its unix socket on this machine, else over TCP, with TLS if configured."""
    if boot_id == this_boot_id() and os.path.exists(unix_path):
        try:
            return connect_unix(unix_path, secret)
        except (ConnectionRefusedError, FileNotFoundError, PermissionError):
            # The same kernel, but another container or user: they can still use the TCP port.
            if not tcp_port:
                raise
    if not tcp_port:
        raise ConnectionRefusedError("it listens on its own machine only")
    return connect_tcp(host, tcp_port, secret, tls)


def _reason(error: OSError) -> str:
    return "connection closed" if isinstance(error, ConnectionClosedError) else str(error)
