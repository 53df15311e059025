"""A failure in the form that Flink's client reads: beside class and text, a Java object in Java's serialization.

The client reads the object back as `org.apache.flink.util.SerializedThrowable`, a class that carries texts only. The
bytes below describe that class and its two parents; then follow the texts.
"""

from __future__ import annotations

import base64
import struct

from rekindle.web.flink_values import Json

_OBJECT, _CLASS, _STRING, _LONG_STRING, _REFERENCE, _END, _NULL = b"s", b"r", b"t", b"|", b"q", b"x", b"p"
_HEADER = b"\xac\xed\x00\x05"
#: Flags of a class: serializable; serializable with a `writeObject` of its own.
_PLAIN, _WRITES = 2, 3
#: Java numbers what it writes; the second thing is the type `String`.
_STRING_TYPE = _REFERENCE + struct.pack(">I", 0x7E0001)
_LONGEST_SHORT = 0xFFFF


def failure_cause(name: str, text: str) -> Json:
    """The failure of an operation: the exception's class, and its text."""
    serialized = base64.b64encode(serialized_throwable(name, text)).decode("ascii")
    return {"class": name, "stack-trace": text, "serialized-throwable": serialized}


def serialized_throwable(name: str, text: str) -> bytes:
    """A `SerializedThrowable` whose message is `text`, of an exception of class `name`."""
    own = _class(
        "org.apache.flink.util.SerializedThrowable",
        7284183123441947635,
        _PLAIN,
        [
            b"L" + _short("fullStringifiedStackTrace") + _text("Ljava/lang/String;"),
            b"L" + _short("originalErrorClassName") + _STRING_TYPE,
            b"[" + _short("serializedException") + _text("[B"),
        ],
    )
    exception = _class("java.lang.Exception", -3387516993124229948, _PLAIN, [])
    throwable = _class(
        "java.lang.Throwable",
        -3042686055658047285,
        _WRITES,
        [
            b"L" + _short("cause") + _text("Ljava/lang/Throwable;"),
            b"L" + _short("detailMessage") + _STRING_TYPE,
            b"[" + _short("stackTrace") + _text("[Ljava/lang/StackTraceElement;"),
            b"L" + _short("suppressedExceptions") + _text("Ljava/util/List;"),
        ],
    )
    cause, stack, suppressed, original = _NULL, _NULL, _NULL, _NULL
    values_of_throwable = cause + _text(text) + stack + suppressed + _END
    values = _text(text) + _text(name) + original
    return _HEADER + _OBJECT + own + exception + throwable + _NULL + values_of_throwable + values


def _class(name: str, version: int, flags: int, fields: list[bytes]) -> bytes:
    head = _CLASS + _short(name) + struct.pack(">qBH", version, flags, len(fields))
    return head + b"".join(fields) + _END


def _short(text: str) -> bytes:
    data = text.encode("ascii")
    return struct.pack(">H", len(data)) + data


def _text(text: str) -> bytes:
    """A string. Java's UTF-8 has other forms for NUL and for characters beyond 16 bits: these are replaced."""
    plain = "".join(char if 0 < ord(char) < 0x10000 else "�" for char in text)
    data = plain.encode("utf-8", "replace")
    if len(data) <= _LONGEST_SHORT:
        return _STRING + struct.pack(">H", len(data)) + data
    return _LONG_STRING + struct.pack(">Q", len(data)) + data
