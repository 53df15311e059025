"""Jars from Maven Central that the peers need beside their Python packages, kept in ``.cache/bench``."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from pathlib import Path

MAVEN = "https://repo1.maven.org/maven2"
FOLDER = Path(__file__).resolve().parents[3] / ".cache" / "bench" / "jars"


def jar(group: str, artifact: str, version: str) -> Path:
    """Return the path of a jar, fetched once; SystemExit with a sentence if it cannot be fetched."""
    path = FOLDER / f"{artifact}-{version}.jar"
    if path.exists():
        return path
    address = f"{MAVEN}/{group.replace('.', '/')}/{artifact}/{version}/{path.name}"
    FOLDER.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}")
    try:
        urllib.request.urlretrieve(address, partial)
    except (urllib.error.URLError, OSError) as error:
        raise SystemExit(f"its jar could not be fetched from {address}: {error}") from None
    partial.rename(path)
    return path
