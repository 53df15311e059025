"""Answers for names of PyFlink that a module or class of Rekindle does not have: by a table, one sentence each.

`listed_names.json` holds what PyFlink 1.20 and 2.3 let one import (`python -m tools.compat pyflink_names` writes it):
for each module when it is there ("both", "1.20", "2.3"), its names with when and, for those that it only imports, from
where ("both pyflink.common.time:Duration"), and the members of its classes by when. `reasons.json` says why something
is not here and what to use; `moved` there has names that PyFlink had elsewhere before 1.20.
"""

from __future__ import annotations

import dis
import json
import logging
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FrameType, ModuleType, TracebackType
from typing import Any, NoReturn

_LOG = logging.getLogger("rekindle")
_FOLDER = Path(__file__).parent
#: The files whose frames only pass an answer on.
_ANSWERING = (str(_FOLDER), str(_FOLDER.parent / "common" / "java_names.py"))
_JAVA_NAMES = ("_j_", "get_java_", "_get_j_")


class Gone:
    """Stands in a class for a member of PyFlink's that is not here: looking it up raises the sentence.

    >>> class Environment:
    ...     register_type = Gone("register_type", "There are no Kryo types here.")
    >>> hasattr(Environment, "register_type"), hasattr(Environment(), "register_type")
    (False, False)
    """

    def __init__(self, name: str, sentence: str) -> None:
        self.name = name
        self.sentence = sentence

    def __get__(self, instance: object | None, owner: type) -> NoReturn:
        raise AttributeError(self.sentence, name=self.name, obj=owner if instance is None else instance)


def answer_for(module: ModuleType, name: str) -> None:
    """Let a module that stands for PyFlink's module `name`, and its classes, answer for what they do not have."""
    listed = _listed().get(name)
    if listed is None:
        return
    own = module.__dict__.get("__getattr__")
    if not isinstance(own, _ModuleAnswer):
        module.__dict__["__getattr__"] = _ModuleAnswer(name, module, own)
    for kind in listed["names"]:
        found = module.__dict__.get(kind)
        if isinstance(found, type):
            _mark_gone(found, *_home(name, kind))


def _mark_gone(found: type, module: str, kind: str) -> None:
    """Put a `Gone` into a class for each member that PyFlink's class has and this one has not."""
    for when, members in _listed().get(module, {"members": {}})["members"].get(kind, {}).items():
        for member in members.split():
            if not hasattr(found, member) and not member.startswith(_JAVA_NAMES):
                setattr(found, member, Gone(member, sentence_for(f"{module}.{kind}.{member}", when)))


def _home(module: str, name: str) -> tuple[str, str]:
    """Where PyFlink defines what a module of its lets one import."""
    while module in _listed():
        origin = _listed()[module]["names"].get(name, "").partition(" ")[2]
        if not origin:
            break
        module, _, name = origin.partition(":")
    return module, name


class _ModuleAnswer:
    """The `__getattr__` of a module: the module's own answer, then re-exports, then the sentence."""

    def __init__(self, name: str, place: ModuleType, own: Callable[[str], Any] | None) -> None:
        self._module = name
        self._place = place
        self._own = own

    def __call__(self, name: str) -> Any:
        if self._own is not None:
            try:
                return self._own(name)
            except AttributeError:
                pass
        full = f"{self._module}.{name}"
        moved = _reasons()["moved"].get(full)
        if moved is not None:
            _LOG.warning("%s is at %s since PyFlink 1.16: import it from there.", full, moved.replace(":", "."))
            return _found_at(moved)
        when, _, origin = _listed()[self._module]["names"].get(name, "").partition(" ")
        if origin:
            try:
                return _found_at(origin)
            except (ImportError, AttributeError):
                full = origin.replace(":", ".") if origin.startswith("pyflink.") else full
        if not when:
            text = f"module {self._module!r} has no attribute {name!r}"
            raise AttributeError(text, name=name, obj=self._place)
        sentence = sentence_for(full, when)
        if _imports_from(sys._getframe(1)):
            raise ImportError(sentence, name=self._module, path=self._place.__file__)
        raise AttributeError(sentence, name=name, obj=self._place)


def missing_module(name: str) -> str:
    """The sentence for a module of PyFlink that is not here."""
    listed = _listed().get(name)
    if listed is not None:
        return sentence_for(name, listed["when"])
    reason = _reason(name) or "docs/guide/pyflink-names.md lists what is there"
    return f"Rekindle has nothing for PyFlink's module '{name}': {reason}."


def sentence_for(full: str, when: str) -> str:
    """The sentence about a name: its meaning, since when it is gone, and its successor."""
    reason = _reason(full) or "docs/guide/pyflink-names.md lists what is there"
    if when == "1.20":
        return f"{full} was in PyFlink up to 1.20 and is gone since 2.0: {reason}."
    return f"{full} of PyFlink is not in Rekindle: {reason}."


def has_reason(full: str) -> bool:
    """Whether the table says why a name is not here."""
    return bool(_reason(full))


def gone_member(owner: object, name: str) -> str | None:
    """The sentence for a member that an object's class marks as gone; None: it does not know the name."""
    for kind in type(owner).__mro__:
        found = kind.__dict__.get(name)
        if isinstance(found, Gone):
            return found.sentence
    return None


def drop_answering_frames(error: BaseException) -> None:
    """End the traceback of an error where the program asked for the name, not where the answer was found."""
    last: TracebackType | None = None
    each = error.__traceback__
    while each is not None:
        if not each.tb_frame.f_code.co_filename.startswith(_ANSWERING):
            last = each
        each = each.tb_next
    if last is not None:
        last.tb_next = None


def _imports_from(frame: FrameType) -> bool:
    """Whether the frame stands at `from module import name`, for which an AttributeError would lose the sentence."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == "IMPORT_FROM"


def _found_at(place: str) -> Any:
    module, _, name = place.partition(":")
    found = import_module(module)
    if not name:
        return found
    try:
        return getattr(found, name)
    except AttributeError:
        return import_module(f"{module}.{name}")


def _reason(full: str) -> str:
    """The reason by the beginning of the last part, or else by the longest beginning of the whole name."""
    reasons = _reasons()["reasons"]
    parts = full.split(".")
    by_beginning = [why for start, why in _reasons()["beginnings"].items() if parts[-1].startswith(start)]
    by_place = [reasons[place] for length in range(len(parts), 1, -1) if (place := ".".join(parts[:length])) in reasons]
    return (by_beginning + by_place + [""])[0]


@cache
def _listed() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((_FOLDER / "listed_names.json").read_text())
    return found


@cache
def _reasons() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads((_FOLDER / "reasons.json").read_text())
    return found
