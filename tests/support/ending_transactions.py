"""Kafka's transactions whose end is decided and not yet written into their topics: readers do not see it so far."""

from __future__ import annotations

import socket
import struct

_LIST_TRANSACTIONS = 66
_TIMEOUT_S = 10.0
#: The states between the answer to a producer's commit or abort and the marks in the topics.
_STATES = (b"PrepareCommit", b"PrepareAbort")


def ending_transactions(bootstrap_servers: str) -> int:
    """The number of transactions of a broker that are being committed or aborted, asked in Kafka's own protocol."""
    host, _, port = bootstrap_servers.rpartition(":")
    filters = bytes([len(_STATES) + 1]) + b"".join(bytes([len(state) + 1]) + state for state in _STATES)
    no_producers, no_tags = b"\x01", b"\x00"
    head = struct.pack(">hhih", _LIST_TRANSACTIONS, 0, 1, -1) + no_tags
    request = head + filters + no_producers + no_tags
    with socket.create_connection((host, int(port)), _TIMEOUT_S) as connection, connection.makefile("rb") as answers:
        connection.sendall(struct.pack(">i", len(request)) + request)
        (length,) = struct.unpack(">i", answers.read(4))
        answer = answers.read(length)
    # The number of the request, tags, the throttle time, the error, unknown states (none), then the transactions.
    error, unknown, found = struct.unpack_from(">hBB", answer, 4 + 1 + 4)
    assert error == 0, f"Kafka's error {error}"
    assert unknown == 1, "Kafka knows these states"
    return int(found) - 1
