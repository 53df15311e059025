"""The Python dependencies of a job besides its own code: archives, and packages. Flink writes them as `path#more`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rekindle import config
from rekindle.errors import GraphError
from rekindle.places import parse_place

if TYPE_CHECKING:
    from rekindle.common.configuration import Configuration

_MARK = "#"
ARCHIVE_SUFFIXES = (".zip", ".jar", ".whl", ".egg", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")


@dataclass(frozen=True)
class PythonArchive:
    """An archive, and the directory below the functions' working directory in which it is unpacked.

    >>> str(PythonArchive("/data/model.zip", "model"))
    '/data/model.zip#model'
    """

    path: str
    target: str

    @staticmethod
    def parse(text: str) -> PythonArchive:
        """Return the archive of a setting; refuse one that cannot be used."""
        path, _, target = text.partition(_MARK)
        path = local_file("python.archives", path)
        if not path.lower().endswith(ARCHIVE_SUFFIXES):
            raise GraphError(f"The archive {path} is none that can be unpacked: {', '.join(ARCHIVE_SUFFIXES)}.")
        target = target or os.path.basename(path)
        if target in (".", "..") or "/" in target or "\0" in target:
            raise GraphError(f"The archive {path} is unpacked into a directory of one name, not '{target}'.")
        return PythonArchive(path, target)

    def __str__(self) -> str:
        return f"{self.path}{_MARK}{self.target}"


@dataclass(frozen=True)
class PythonRequirements:
    """A requirements file of pip, and the directory with packages if nothing is to come from an index.

    >>> str(PythonRequirements("/job/requirements.txt", "/job/packages"))
    '/job/requirements.txt#/job/packages'
    """

    file: str
    cache: str | None = None

    @staticmethod
    def parse(text: str) -> PythonRequirements:
        """Return the requirements of a setting; refuse files that are not there."""
        file, _, cache = text.partition(_MARK)
        found = local_file("python.requirements", file)
        directory = local_file("python.requirements", cache) if cache else None
        if directory is not None and not os.path.isdir(directory):
            raise GraphError(f"python.requirements: {directory} is no directory of packages.")
        return PythonRequirements(found, directory)

    def __str__(self) -> str:
        return self.file if self.cache is None else f"{self.file}{_MARK}{self.cache}"


@dataclass(frozen=True)
class PythonDependencies:
    """The dependencies that the settings of a job name."""

    archives: tuple[PythonArchive, ...] = ()
    requirements: PythonRequirements | None = None
    #: The interpreter of the slots: a path on every host, or one that begins with an archive's target.
    executable: str | None = None

    @staticmethod
    def of(configuration: Configuration) -> PythonDependencies:
        """Read and check the settings."""
        archives = tuple(map(PythonArchive.parse, configuration.get(config.PYTHON_ARCHIVES) or ()))
        targets = [archive.target for archive in archives]
        for target in targets:
            if targets.count(target) > 1:
                raise GraphError(f"Two archives are unpacked into '{target}': name another target for one of them.")
        requirements = configuration.get(config.PYTHON_REQUIREMENTS)
        return PythonDependencies(
            archives,
            PythonRequirements.parse(requirements) if requirements else None,
            configuration.get(config.PYTHON_EXECUTABLE),
        )

    def archive_of_executable(self) -> PythonArchive | None:
        """Return the archive that holds the interpreter, if it is in one."""
        if self.executable is None or os.path.isabs(self.executable):
            return None
        first = os.path.normpath(self.executable).split(os.sep)[0]
        return next((archive for archive in self.archives if archive.target == first), None)


def local_file(where: str, path: str) -> str:
    """Return the absolute path of a file or directory on this machine; refuse what is not there."""
    try:
        place = parse_place(path)
    except ValueError as error:
        raise GraphError(f"{where}: {error}.") from None
    if not place.is_local:
        raise GraphError(f"{where}: '{path}' must be on the machine that starts the job: copy it there first.")
    path = os.path.abspath(place.path)
    if not os.path.exists(path):
        raise GraphError(f"{where}: there is no '{path}'.")
    return path
