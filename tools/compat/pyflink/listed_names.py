"""The list of names that ships with Rekindle: what PyFlink 1.20 and 2.3 let one import, from their wheels."""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

from tools.compat.pyflink.source_names import SourceModule, members_of, read_modules

_ROOT = Path(__file__).resolve().parents[3]
#: Read by `rekindle.pyflink_names.missing_names`, whose docstring says what its texts mean.
LISTED = _ROOT / "src" / "rekindle" / "pyflink_names" / "listed_names.json"


def write_listed(wheels: dict[str, Path]) -> None:
    """Write the list from the wheels of the two releases, by their versions."""
    releases = {version: _modules_in(wheel) for version, wheel in wheels.items()}
    LISTED.write_text(json.dumps(listed(releases), indent=0, sort_keys=True) + "\n")


def listed(releases: dict[str, dict[str, SourceModule]]) -> dict[str, object]:
    """The list as data: modules -> when, names -> when and from where, classes -> members by when."""
    result: dict[str, object] = {}
    for module in sorted(set().union(*releases.values())):
        within = {version: modules for version, modules in releases.items() if module in modules}
        names = {
            name: _when(version for version in within if name in within[version][module].bound)
            + _origin(name, [modules[module] for modules in within.values()])
            for name in sorted(set().union(*(modules[module].bound for modules in within.values())))
            if not name.startswith("_")
        }
        members: dict[str, dict[str, list[str]]] = {}
        for version, modules in within.items():
            for kind in modules[module].classes:
                for member in members_of(modules, module, kind):
                    members.setdefault(kind, {}).setdefault(member, []).append(version)
        result[module] = {
            "when": _when(within),
            "names": names,
            "members": {kind: _by_when(found) for kind, found in sorted(members.items())},
        }
    return result


def _by_when(found: dict[str, list[str]]) -> dict[str, str]:
    result: dict[str, str] = {}
    for member, versions in sorted(found.items()):
        when = _when(versions)
        result[when] = f"{result[when]} {member}" if when in result else member
    return result


def _when(versions: Iterable[str]) -> str:
    found = sorted(versions)
    return "both" if len(found) == 2 else found[0]


def _origin(name: str, modules: list[SourceModule]) -> str:
    origin = next((module.bound[name] for module in reversed(modules) if name in module.bound), None)
    return "" if origin is None else f" {origin}"


def _modules_in(wheel: Path) -> dict[str, SourceModule]:
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder, [name for name in archive.namelist() if name.endswith(".py")])
        return read_modules(Path(folder))
