"""Reads, from the sources of a PyFlink, every name that its modules let one import and every member of its classes.

Names only, read with `ast`: nothing of PyFlink runs, so an older release needs no environment of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_ROOTS = ("pyflink.common", "pyflink.datastream", "pyflink.metrics", "pyflink.table")
_APART = frozenset({"tests", "examples"})


@dataclass
class SourceModule:
    """What a module binds at its top: name -> the module and name that it comes from, or None for its own."""

    name: str
    is_package: bool
    bound: dict[str, str | None] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)


def read_modules(root: Path) -> dict[str, SourceModule]:
    """The modules of the API below a folder that has `pyflink` in it."""
    found = {}
    for path in sorted((root / "pyflink").rglob("*.py")):
        parts = list(path.relative_to(root).with_suffix("").parts)
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        if name.startswith(_ROOTS) and not _APART.intersection(parts):
            module = SourceModule(name, is_package)
            _bind(module, ast.parse(path.read_text()).body)
            found[name] = module
    return found


def members_of(modules: dict[str, SourceModule], module: str, name: str) -> set[str]:
    """The public members of a class, with those that its bases in PyFlink define."""
    node = modules[module].classes[name]
    members = {each for each in _bound_in(node) if not each.startswith("_")}
    for base in node.bases:
        base = base.value if isinstance(base, ast.Subscript) else base
        if isinstance(base, ast.Name):
            place = _home(modules, module, base.id)
            if place is not None and place != (module, name):
                members |= members_of(modules, *place)
    return members


def _home(modules: dict[str, SourceModule], module: str, name: str) -> tuple[str, str] | None:
    """Where a class that a module names is defined; None: not in these modules."""
    while module in modules and name in modules[module].bound:
        if name in modules[module].classes:
            return module, name
        origin = modules[module].bound[name]
        if origin is None:
            return None
        module, _, name = origin.partition(":")
    return None


def _bound_in(node: ast.ClassDef) -> Iterator[str]:
    for each in node.body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield each.name
        elif isinstance(each, ast.Assign):
            yield from (target.id for target in each.targets if isinstance(target, ast.Name))
        elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            yield each.target.id


def _bind(module: SourceModule, body: Sequence[ast.stmt]) -> None:
    for node in body:
        match node:
            case ast.ClassDef():
                module.bound[node.name] = None
                module.classes[node.name] = node
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                module.bound[node.name] = None
            case ast.Assign():
                for target in node.targets:
                    for each in ast.walk(target):
                        if isinstance(each, ast.Name):
                            module.bound[each.id] = None
            case ast.AnnAssign(target=ast.Name(id=name)):
                module.bound[name] = None
            case ast.ImportFrom():
                for alias in node.names:
                    module.bound[alias.asname or alias.name] = f"{_absolute(module, node)}:{alias.name}"
            case ast.Import():
                for alias in node.names:
                    module.bound[alias.asname or alias.name.partition(".")[0]] = (
                        alias.name if alias.asname else alias.name.partition(".")[0]
                    ) + ":"
            case ast.If() | ast.Try() | ast.With():
                _bind(module, node.body)
                _bind(module, getattr(node, "orelse", []))
                for handler in getattr(node, "handlers", []):
                    _bind(module, handler.body)


def _absolute(module: SourceModule, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    above = module.name.split(".")
    above = above[: len(above) - node.level + module.is_package]
    return ".".join([*above, node.module] if node.module else above)
