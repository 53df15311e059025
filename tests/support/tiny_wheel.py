"""A package of one function, as a wheel that pip installs without an index."""

from __future__ import annotations

import zipfile
from pathlib import Path


def tiny_wheel(directory: Path, name: str = "tinydep", answer: int = 42) -> Path:
    """Write a wheel whose module has `answer()`; return its path."""
    directory.mkdir(parents=True, exist_ok=True)
    wheel = directory / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}/__init__.py": f"def answer():\n    return {answer}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(path, text)
    return wheel
