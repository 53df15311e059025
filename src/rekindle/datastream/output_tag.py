"""`OutputTag`: the name and type of a side output."""

from __future__ import annotations

from typing import Any, ClassVar

from rekindle.common.typeinfo import TypeInformation, Types, infer_type_info
from rekindle.errors import GraphError


class OutputTag:
    """Names a side output. A process function emits to it with `yield tag, value`; `get_side_output(tag)` reads it.

    Tags with equal ids are equal.

    >>> late = OutputTag("late", int)
    >>> late == OutputTag("late"), late.tag_id
    (True, 'late')
    """

    #: The number of tags created or unpickled in this process. While it is 0, no function can emit to a side output.
    created: ClassVar[int] = 0

    __slots__ = ("tag_id", "type_info")

    def __init__(self, tag_id: str, type_info: Any = None) -> None:
        if not isinstance(tag_id, str) or not tag_id:
            raise GraphError(f"OutputTag needs a name: a non-empty string, not {tag_id!r}.")
        self.tag_id = tag_id
        self.type_info: TypeInformation | None
        if type_info is None:
            self.type_info = None
        elif isinstance(type_info, list):
            self.type_info = Types.ROW([infer_type_info(each) for each in type_info])
        else:
            self.type_info = infer_type_info(type_info)
        OutputTag.created += 1

    def __reduce__(self) -> tuple[type[OutputTag], tuple[str, TypeInformation | None]]:
        return OutputTag, (self.tag_id, self.type_info)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutputTag) and self.tag_id == other.tag_id

    def __hash__(self) -> int:
        return hash(self.tag_id)

    def __repr__(self) -> str:
        return f"OutputTag({self.tag_id!r})"
