"""Ships archives and packages with a job: read on the driver, unpacked in each slot's own directory."""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rekindle.common.configuration import Configuration
from rekindle.datastream.python_dependencies import PythonArchive, PythonDependencies
from rekindle.errors import SerializationError
from rekindle.graph.install_requirements import installed_packages
from rekindle.graph.unpack_archive import unpack_archive

#: The limit for all archives of a job together, which travel in one message.
_LARGEST_BYTES = 1 << 30
#: Where the functions of a job with archives run, below the slot's directory.
WORKING_DIRECTORY = "archives"
_PACKAGES = "packages"


@dataclass(frozen=True)
class ShippedDependencies:
    """The content of archives by (target, file name), and the packages as a zip archive."""

    archives: tuple[tuple[str, str, bytes], ...] = ()
    packages: bytes | None = None


def ship_dependencies(configuration: Configuration) -> ShippedDependencies:
    """Read the archives and install the packages that the settings of a job name."""
    named = PythonDependencies.of(configuration)
    python = None if named.archive_of_executable() is not None else named.executable
    packages = installed_packages(named.requirements, python) if named.requirements is not None else None
    return ShippedDependencies(tuple(_read(named.archives)), packages)


def _read(archives: Iterable[PythonArchive]) -> Iterable[tuple[str, str, bytes]]:
    total = 0
    for archive in archives:
        total += os.path.getsize(archive.path)
        if total > _LARGEST_BYTES:
            raise SerializationError(
                f"The archives have more than {_LARGEST_BYTES >> 20} MiB with {archive.path}: put large files where "
                "every machine reaches them, and register their URL with register_cached_file()."
            )
        yield archive.target, os.path.basename(archive.path), Path(archive.path).read_bytes()


def place_dependencies(shipped: ShippedDependencies, directory: str) -> None:
    """Unpack archives into the working directory of this process, and make the packages importable."""
    if shipped.archives:
        working = os.path.join(directory, WORKING_DIRECTORY)
        for target, name, content in shipped.archives:
            unpack_archive(content, name, os.path.join(working, target))
        os.chdir(working)
    if shipped.packages is not None:
        packages = os.path.join(directory, _PACKAGES)
        unpack_archive(shipped.packages, "of the job's packages", packages)
        site.addsitedir(packages)  # reads .pth files, too
        sys.path[:] = [packages, *(entry for entry in sys.path if entry != packages)]
