"""Compares PyFlink's public names with Rekindle's: writes docs/guide/pyflink-names.md and the lists behind it.

The names come from an installed PyFlink, the one in whose environment `make compat` records programs; the list that
ships with Rekindle, of all that 1.20 and 2.3 let one import, from the wheels of both.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.compat.pyflink.environment import (
    PYFLINK_1_VERSION,
    PYFLINK_VERSION,
    PyFlinkMissingError,
    pyflink_python,
    wheel_of,
)
from tools.compat.pyflink.listed_names import write_listed
from tools.compat.pyflink.names_page import page_of

ROOT = Path(__file__).resolve().parents[2]
#: The names of PyFlink, names only: modules -> classes and functions -> public and special methods.
NAMES = ROOT / "tests" / "data" / "pyflink_names.json"
PAGE = ROOT / "docs" / "guide" / "pyflink-names.md"


def main(arguments: Sequence[str]) -> int:
    """Read PyFlink's names and write both files; with `--page` only the page, from the list that is here."""
    if "--page" in arguments:
        PAGE.write_text(page_of(json.loads(NAMES.read_text())["modules"], PYFLINK_VERSION))
        return 0
    try:
        python = pyflink_python()
        write_listed({"1.20": wheel_of(PYFLINK_1_VERSION), "2.3": wheel_of(PYFLINK_VERSION)})
    except PyFlinkMissingError as error:
        print(f"compat: {error}", file=sys.stderr)
        return 1
    collector = Path(__file__).parent / "pyflink" / "collect_names.py"
    found = subprocess.run([str(python), str(collector)], check=True, capture_output=True, text=True).stdout
    names = json.loads(found)
    NAMES.write_text(json.dumps({"version": PYFLINK_VERSION, "modules": names}, indent=1, sort_keys=True) + "\n")
    PAGE.write_text(page_of(names, PYFLINK_VERSION))
    print(
        f"compat: {sum(map(len, names.values()))} classes and functions of PyFlink {PYFLINK_VERSION} are compared in "
        f"{PAGE.relative_to(ROOT)}."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
