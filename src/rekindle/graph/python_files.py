"""Finds the user's own modules, which slots cannot import, and reads them for shipping: files by module name."""

from __future__ import annotations

import os
import re
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

from rekindle.errors import SerializationError

#: Packages that every slot has, wherever they were loaded from.
_ALWAYS_THERE = frozenset({"rekindle", "pyspark", "py4j", "pyflink", "__main__", "__mp_main__"})
#: Where a slot keeps the program's modules, below its own directory.
PROGRAM_DIRECTORY = "program"
_SHIPPED_FILE = re.compile(rf'File "[^"]*/rekindle-slot-[^"/]*/{PROGRAM_DIRECTORY}/(?:added-[0-9]+/)?([^"]+)"')
_LARGEST_FILE_BYTES = 64 * 1024 * 1024


def program_modules(modules: Mapping[str, ModuleType] | None = None) -> dict[str, bytes]:
    """The source files of the loaded modules that belong to the user's program, by path relative to a directory.

    A module `a.b` becomes `a/b.py`, wherever it was loaded from, so that `import a.b` finds it.
    """
    return {name: path.read_bytes() for name, path in _sources(sys.modules if modules is None else modules)}


def _sources(modules: Mapping[str, ModuleType]) -> Iterator[tuple[str, Path]]:
    """Each module of the user's program: its path when shipped, and its file here."""
    installed = installed_directories()
    loaded = dict(modules)  # in one step: other threads import modules meanwhile
    for name, module in sorted(loaded.items()):
        source = getattr(module, "__file__", None)
        if name.partition(".")[0] in _ALWAYS_THERE or not isinstance(source, str) or not source.endswith(".py"):
            continue
        path = Path(source)
        if not is_below(path, installed) and path.is_file():
            yield _relative(name, path), path


def with_own_paths(traceback: str, modules: Mapping[str, ModuleType] | None = None) -> str:
    """A slot's traceback with the paths of the user's own files in place of the slot's copies, which are deleted.

    >>> with_own_paths('File "/tmp/rekindle-slot-0-abc/program/unknown.py", line 3', {})
    'File "unknown.py", line 3'
    """
    if PROGRAM_DIRECTORY not in traceback:
        return traceback
    own = dict(_sources(sys.modules if modules is None else modules))
    return _SHIPPED_FILE.sub(lambda match: f'File "{own.get(match[1], match[1])}"', traceback)


def _relative(name: str, path: Path) -> str:
    parts = name.split(".")
    return "/".join([*parts, "__init__.py"]) if path.name == "__init__.py" else "/".join(parts) + ".py"


def installed_directories() -> list[Path]:
    """The directories of the standard library and of installed packages."""
    folders = {*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages()}
    folders.add(os.path.dirname(os.__file__))
    spark_home = os.environ.get("SPARK_HOME")
    if spark_home:
        folders.add(os.path.join(spark_home, "python"))
    # Not the environment's own directory: a program may lie beside it, or in it.
    wanted = [Path(folder).resolve() for folder in folders if folder and os.path.isabs(folder)]
    return [folder for folder in wanted if folder.name not in ("bin", "") and folder != Path(sys.prefix).resolve()]


def is_below(path: Path, directories: Iterable[Path]) -> bool:
    """Whether a file is in one of the directories, at any depth."""
    resolved = path.resolve()
    return any(resolved.is_relative_to(directory) for directory in directories) or bool(
        {"site-packages", "dist-packages"} & set(resolved.parts)
    )


def script_directory() -> str | None:
    """The directory of the program, where lazily imported modules may be found on the same machine."""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.dirname(os.path.abspath(script)) if isinstance(script, str) else os.getcwd()


def added_files(python_files: Iterable[str]) -> tuple[dict[str, bytes], list[str]]:
    """The files of `add_python_file`, each below a directory of its own, and the directories to import from."""
    files: dict[str, bytes] = {}
    search: list[str] = []
    for index, name in enumerate(python_files):
        path, root = Path(name), f"added-{index}"
        if not path.exists():
            raise SerializationError(f"Python file '{name}' was added, but is no longer there.")
        if path.is_dir():
            for each in sorted(path.rglob("*")):
                if each.is_file() and "__pycache__" not in each.parts:
                    files[f"{root}/{path.name}/{each.relative_to(path).as_posix()}"] = _read(each)
            # A package is imported from its parent; PyFlink also finds the modules inside it by their own names.
            search += [root, f"{root}/{path.name}"] if (path / "__init__.py").exists() else [f"{root}/{path.name}"]
        else:
            files[f"{root}/{path.name}"] = _read(path)
            search.append(root if path.suffix == ".py" else f"{root}/{path.name}")
    return files, search


def _read(path: Path) -> bytes:
    size = path.stat().st_size
    if size > _LARGEST_FILE_BYTES:
        raise SerializationError(
            f"'{path}' has {size} bytes, too many to ship with the job (limit {_LARGEST_FILE_BYTES}): "
            "install it where the executors run."
        )
    return path.read_bytes()
