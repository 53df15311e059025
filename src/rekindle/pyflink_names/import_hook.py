"""The import hook: `pyflink.a.b` is the module `rekindle.a.b` itself, so that classes are the same under both names."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

from rekindle.pyflink_names.missing_names import answer_for, missing_module

_NAME, _TARGET = "pyflink", "rekindle"
#: Modules of PyFlink that have another place here.
_ELSEWHERE = {
    "pyflink.java_gateway": "rekindle.pyflink_names.java_gateway",
    "pyflink.util": "rekindle.pyflink_names.util",
    "pyflink.util.java_utils": "rekindle.pyflink_names.java_gateway",
    "pyflink.version": "rekindle.pyflink_names.pyflink_version",
}
#: Packages of Rekindle that PyFlink does not have: `pyflink.spark` is nothing.
_OWN = frozenset({"common", "datastream", "metrics", "table"})


class PyFlinkNames(MetaPathFinder, Loader):
    """Finds `pyflink` and the modules below it: as the finder and as the loader of what it found."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for a name of PyFlink; the error for a module that is not here says so."""
        if fullname != _NAME and not fullname.startswith(f"{_NAME}."):
            return None
        if fullname == _NAME:
            return ModuleSpec(fullname, self, is_package=True)
        counterpart = _counterpart(fullname)
        if counterpart is None:
            raise ModuleNotFoundError(missing_module(fullname), name=fullname)
        return ModuleSpec(fullname, self, loader_state=counterpart)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return the module of Rekindle that the name stands for; `pyflink` itself is a module of its own."""
        if spec.name == _NAME:
            return None
        module = import_module(spec.loader_state)
        answer_for(module, spec.name)
        # The import system writes the alias's spec over the module's own, which `exec_module` puts back.
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module back the spec under its own name."""
        assert module.__spec__ is not None, "the import system has set it"
        if module.__spec__.name == _NAME:
            module.__dict__["__version__"] = import_module("rekindle.pyflink_names.pyflink_version").__version__
            module.__dict__["__file__"] = import_module(_TARGET).__file__
            return
        module.__spec__ = module.__spec__.loader_state


def _counterpart(fullname: str) -> str | None:
    """The module of Rekindle for a module of PyFlink; None: there is none."""
    if fullname in _ELSEWHERE:
        return _ELSEWHERE[fullname]
    below = fullname.removeprefix(f"{_NAME}.")
    if below.partition(".")[0] not in _OWN:
        return None
    counterpart = f"{_TARGET}.{below}"
    try:
        return counterpart if find_spec(counterpart) is not None else None
    except ModuleNotFoundError:
        return None


_finder: PyFlinkNames | None = None


def install() -> None:
    """Let `import pyflink` mean Rekindle in this process; a second call changes nothing.

    >>> install()
    >>> from pyflink.datastream import StreamExecutionEnvironment
    >>> StreamExecutionEnvironment.__module__
    'rekindle.datastream.stream_execution_environment'
    >>> uninstall()
    """
    global _finder
    if _finder is not None:
        return
    _forget_imported()
    _finder = PyFlinkNames()
    sys.meta_path.insert(0, _finder)


def uninstall() -> None:
    """Take the names back: `import pyflink` finds an installed PyFlink again, or nothing."""
    global _finder
    if _finder is None:
        return
    sys.meta_path.remove(_finder)
    _finder = None
    _forget_imported()


@contextmanager
def installed() -> Iterator[None]:
    """Install the names for the duration of a `with` statement, unless they are there already.

    >>> with installed():
    ...     from pyflink.common import Row
    >>> is_installed()
    False
    """
    there = is_installed()
    install()
    try:
        yield
    finally:
        if not there:
            uninstall()


def is_installed() -> bool:
    """Whether `import pyflink` means Rekindle in this process."""
    return _finder is not None


def _forget_imported() -> None:
    for name in [each for each in list(sys.modules) if each == _NAME or each.startswith(f"{_NAME}.")]:
        del sys.modules[name]
