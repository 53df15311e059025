"""Prints, as JSON, the public names of the installed PyFlink's DataStream API; runs in PyFlink's own environment."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import sys

_ROOTS = ("pyflink.common", "pyflink.datastream", "pyflink.metrics")
#: Special methods that say something about a class; others come from Python itself.
_SPECIAL = frozenset(
    f"__{name}__"
    for name in (
        "eq",
        "hash",
        "lt",
        "le",
        "str",
        "repr",
        "len",
        "iter",
        "next",
        "contains",
        "getitem",
        "setitem",
        "delitem",
        "call",
        "enter",
        "exit",
    )
)


def main() -> None:
    """Print {module: {class or function: [methods]}} of what each module defines."""
    found: dict[str, dict[str, list[str]]] = {}
    for module in modules():
        names = {}
        for name, value in vars(module).items():
            if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
                continue
            if inspect.isclass(value):
                names[name] = methods(value)
            elif inspect.isfunction(value):
                names[name] = []
        if names:
            found[module.__name__] = names
    json.dump(found, sys.stdout)


def modules():
    """The modules of the API, without tests."""
    for root in _ROOTS:
        package = importlib.import_module(root)
        yield package
        for each in pkgutil.walk_packages(package.__path__, f"{root}."):
            if ".tests" not in each.name:
                yield importlib.import_module(each.name)


def methods(kind):
    """The public methods and attributes that a class has, and the special ones that it defines itself."""
    own = {name for base in kind.__mro__ if base.__module__.startswith("pyflink.") for name in vars(base)}
    return sorted(name for name in own if not name.startswith("_") or name in _SPECIAL)


if __name__ == "__main__":
    main()
