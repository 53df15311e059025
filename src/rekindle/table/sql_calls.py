"""`Call`: an operator or a function in the text of a query; and a query with other texts in the place of calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

#: Stands after the name of a function whose meaning is Spark's already. Queries of users have no comments left.
_DONE = "/**/"
_STRING = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)


@dataclass(frozen=True)
class Call:
    """An operator or a function: where it stands, and the texts of its arguments.

    An argument that the text does not have, such as the length of SUBSTRING without FOR, is empty.
    """

    name: str
    start: int
    stop: int
    text: str
    arguments: tuple[str, ...] = ()
    #: The kind of Spark's expression, the types of the arguments before Spark casts them, and the type of the result.
    kind: str = ""
    types: tuple[str, ...] = ()
    result: str = ""

    @property
    def is_done(self) -> bool:
        """Whether it has been translated."""
        return self.text.lower().startswith(self.name + _DONE)

    @property
    def given(self) -> list[str]:
        """The arguments that the text has, in parentheses."""
        return [f"({argument})" for argument in self.arguments if argument]

    def tail(self) -> str:
        """Return all that follows the name: arguments, FILTER and OVER."""
        return self.text[len(self.name) :]


def spark(name: str, *arguments: str) -> str:
    """Return a call that means what Spark means by it.

    >>> spark("ltrim", "'a'", "word")
    "ltrim/**/('a', word)"
    """
    return f"{name}{_DONE}({', '.join(arguments)})"


def spark_with(name: str, tail: str) -> str:
    """Return a call like `spark`, of which all but the name is there."""
    return f"{name}{_DONE}{tail}"


def spark_cast(value: str, data_type: str) -> str:
    """Return a cast that means what Spark means by it."""
    return f"CAST{_DONE}({value} AS {data_type})"


def time_type(is_local: bool, digits: int | None) -> str:
    """Return a type of times, with the digits of a second as a comment: Spark's types have six.

    >>> time_type(False, 3)
    'TIMESTAMP_NTZ/*(3)*/'
    """
    name = "TIMESTAMP_LTZ" if is_local else "TIMESTAMP_NTZ"
    return name if digits is None else f"{name}/*({digits})*/"


def string_of(text: str) -> str | None:
    """Return the value of a string's text; None if it is another expression.

    >>> string_of("'it''s'"), string_of("word")
    ("it's", None)
    """
    found = _STRING.fullmatch(text.strip())
    return None if found is None else re.sub(r"\\(.)", r"\1", found[1].replace("''", "'"), flags=re.DOTALL)


def integer_of(text: str) -> int | None:
    """Return the value of an integer's text; None if it is another expression.

    >>> integer_of("-3"), integer_of("n")
    (-3, None)
    """
    return int(text) if re.fullmatch(r"\s*-?\s*[0-9]+\s*", text) else None


def rewritten(sql: str, texts: Mapping[Call, str]) -> str:
    """Return a query with these texts in the place of the calls. A call around another one waits for the next time.

    >>> inner, outer = Call("f", 2, 6, "f(x)"), Call("g", 0, 7, "g(f(x))")
    >>> rewritten("g(f(x))", {inner: "h(x)", outer: "never"})
    'g(h(x))'
    """
    for call in sorted(_innermost(texts), key=lambda call: call.start, reverse=True):
        sql = sql[: call.start] + texts[call] + sql[call.stop :]
    return sql


def _innermost(calls: Iterable[Call]) -> list[Call]:
    found: list[Call] = []
    for call in sorted(calls, key=lambda call: (call.stop - call.start, call.start)):
        if all(call.stop <= other.start or other.stop <= call.start for other in found):
            found.append(call)
    return found
