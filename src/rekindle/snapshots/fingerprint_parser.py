"""Parse the fingerprint of a declared type, which checkpoints without schemas have, into the shape of a column.

Fingerprints are written by `rekindle.common.type_system`: `Row<id:Long,name:String>`,
`Dataclass<Order>{id:Long,paid_ms:Long|Null=}`, `Map<String,Tuple<Long,Long>>`.
"""

from __future__ import annotations

from typing import Final

from rekindle.snapshots.shapes import (
    UNKNOWN,
    ElementsShape,
    EntriesShape,
    FieldsShape,
    Form,
    PickledShape,
    Plain,
    PlainShape,
    Shape,
)

#: The names of types without parts.
PLAIN_NAMES: Final = {
    "Boolean": Plain.BOOLEAN,
    "Byte": Plain.BYTE,
    "Short": Plain.SHORT,
    "Integer": Plain.INT,
    "Long": Plain.LONG,
    "BigInteger": Plain.BIG_INT,
    "Float": Plain.FLOAT,
    "Double": Plain.DOUBLE,
    "BigDecimal": Plain.DECIMAL,
    "String": Plain.STRING,
    "Char": Plain.STRING,
    "ByteArray": Plain.BYTES,
    "MemoryView": Plain.BYTES,
    "Date": Plain.DATE,
    "LocalDate": Plain.DATE,
    "Time": Plain.TIME,
    "LocalTime": Plain.TIME,
    "Timestamp": Plain.TIMESTAMP,
    "LocalDateTime": Plain.TIMESTAMP,
    "Instant": Plain.INSTANT,
    "Duration": Plain.DURATION,
    "UUID": Plain.UUID,
}
_COLLECTIONS: Final = frozenset({"List", "ObjectArray", "BasicArray", "PrimitiveArray", "Set", "FrozenSet"})
_CLASSES: Final = {"Dataclass": Form.MAP, "Struct": Form.MAP, "TypedDict": Form.MAP, "NamedTuple": Form.ARRAY}


class _UnreadableError(ValueError):
    """Internal: the text is no fingerprint of this version."""


def shape_of(fingerprint: str) -> Shape:
    """The shape that a fingerprint describes; unknown if it is not one of this version's.

    >>> from rekindle.snapshots.shapes import described
    >>> described(shape_of("Map<String,Dataclass<Order>{id:Long,paid_ms:Long|Null=}>"))
    'map<string, fields<id: long, paid_ms: long>>'
    """
    parser = _Parser(fingerprint)
    try:
        shape = parser.alternatives()
        return shape if parser.at_end() else UNKNOWN
    except (_UnreadableError, IndexError):
        return UNKNOWN


class _Parser:
    """Reads one fingerprint from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def at_end(self) -> bool:
        return self._at == len(self._text)

    def alternatives(self) -> Shape:
        """A type, or several with `|` between them: one of them besides Null is that type, nullable."""
        found = [self._type()]
        while self._takes("|"):
            found.append(self._type())
        real = [shape for shape in found if shape is not None]
        return real[0] if len(real) == 1 else UNKNOWN

    def _type(self) -> Shape | None:
        name = self._word()
        if name == "Null":
            return None
        if name == "Pickled":
            self._skip_brackets("<", ">")
            return PickledShape()
        if name in ("Enum", "Literal"):
            self._skip_brackets("<", ">")
            self._skip_brackets("{", "}")
            return UNKNOWN
        if name in _CLASSES:
            return self._class(_CLASSES[name])
        if not self._takes("<"):
            return PlainShape(_plain(name))
        return self._with_parts(name)

    def _with_parts(self, name: str) -> Shape:
        if name == "Row":
            return self._row()
        parts = [self.alternatives()]
        if self._takes("..."):
            self._expect(">")
            return ElementsShape(parts[0], Form.ARRAY)
        while self._takes(","):
            parts.append(self.alternatives())
        self._expect(">")
        if name == "Tuple":
            return FieldsShape(_positions(len(parts)), tuple(parts), Form.ARRAY)
        if name == "Map" and len(parts) == 2:
            return EntriesShape(parts[0], parts[1], Form.MAP)
        if name == "PrimitiveArray" and parts == [PlainShape(Plain.BYTE)]:
            return PlainShape(Plain.BYTES)
        if name in _COLLECTIONS and len(parts) == 1:
            return ElementsShape(parts[0], Form.ARRAY)
        raise _UnreadableError(name)

    def _row(self) -> Shape:
        names: list[str] = []
        parts: list[Shape] = []
        while True:
            begin = self._at
            name = self._name_before_colon()
            if name is None:
                self._at = begin
            else:
                names.append(name)
            parts.append(self.alternatives())
            if not self._takes(","):
                break
        self._expect(">")
        if names and len(names) != len(parts):
            raise _UnreadableError("Row")
        form = Form.ROW if names else Form.UNNAMED_ROW
        return FieldsShape(tuple(names) or _positions(len(parts)), tuple(parts), form)

    def _class(self, form: Form) -> Shape:
        self._skip_brackets("<", ">")
        if not self._takes("{"):
            return UNKNOWN  # a class inside itself
        names: list[str] = []
        parts: list[Shape] = []
        while not self._takes("}"):
            name = self._name_before_colon()
            if name is None:
                raise _UnreadableError("field")
            names.append(name)
            parts.append(self.alternatives())
            self._takes("=")
            self._takes(",")
        return FieldsShape(tuple(names), tuple(parts), form)

    def _word(self) -> str:
        begin = self._at
        while not self.at_end() and (self._text[self._at].isalnum() or self._text[self._at] == "_"):
            self._at += 1
        if begin == self._at:
            raise _UnreadableError(self._text)
        return self._text[begin : self._at]

    def _name_before_colon(self) -> str | None:
        """A field's name; None if a type follows instead."""
        end = self._at
        while self._text[end] not in ":<>{},|":
            end += 1
        if self._text[end] != ":":
            return None
        name = self._text[self._at : end]
        self._at = end + 1
        return name

    def _takes(self, token: str) -> bool:
        found = self._text.startswith(token, self._at)
        self._at += len(token) if found else 0
        return found

    def _expect(self, token: str) -> None:
        if not self._takes(token):
            raise _UnreadableError(self._text[self._at :])

    def _skip_brackets(self, opening: str, closing: str) -> None:
        """Skip a bracket with all that is inside, if one follows."""
        if not self._takes(opening):
            return
        depth = 1
        while depth:
            depth += (self._text[self._at] == opening) - (self._text[self._at] == closing)
            self._at += 1


def _plain(name: str) -> Plain:
    if name not in PLAIN_NAMES:
        raise _UnreadableError(name)
    return PLAIN_NAMES[name]


def _positions(count: int) -> tuple[str, ...]:
    return tuple(f"f{index}" for index in range(count))
