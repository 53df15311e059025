"""Writes the tables of other projects' configuration keys that lie in the package, from their sources.

    python -m tools.key_tables --flink flink --librdkafka librdkafka --kafka kafka

The arguments are git repositories with the tags that this module names, with or without a work tree. Give only those
whose tables are to be written anew.
"""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "rekindle"
FLINK_KEYS = PACKAGE / "common" / "flink_keys.txt"
LIBRDKAFKA_NAMES = PACKAGE / "datastream" / "connectors" / "kafka" / "librdkafka_names.txt"
JAVA_NAMES = LIBRDKAFKA_NAMES.with_name("java_names.txt")

FLINK_RELEASES = ("release-1.20.5", "release-2.3.0")
#: Of these only keys whose first word the newer ones have too: all other first words are the programs' own.
OLDER_FLINK_RELEASES = ("release-1.8.3", "release-1.9.3", "release-1.11.6", "release-1.13.6", "release-1.17.2")
LIBRDKAFKA_RELEASES = ("v2.15.0",)
KAFKA_RELEASES = ("2.8", "3.4", "heads/trunk")


# -- git ---------------------------------------------------------------------------------------------------------------


def files_of(repository: Path, revision: str, *folders: str) -> Iterator[tuple[str, str]]:
    """Path and text of each file in the folders of a revision."""
    command = ["git", "-C", str(repository), "archive", "--format=tar", revision, "--", *folders]
    archive = subprocess.run(command, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        for member in files:
            content = files.extractfile(member)
            if content is not None:
                yield member.name, content.read().decode("utf-8", "replace")


def described(repository: Path, revision: str) -> str:
    """A revision with its commit."""
    found = subprocess.run(
        ["git", "-C", str(repository), "rev-parse", "--short=12", f"{revision}^{{commit}}"],
        check=True,
        capture_output=True,
        text=True,
    )
    return f"{revision} ({found.stdout.strip()})"


# -- constants in Java -------------------------------------------------------------------------------------------------

_COMMENT = re.compile(r"/\*.*?\*/|(?<![:\"])//[^\n]*", re.DOTALL)
_CONSTANT = re.compile(r"\bString\s+(\w+)\s*=\s*([^;]+);")
_CLASS = re.compile(r"\b(?:class|interface|enum)\s+(\w+)")
_TOKEN = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([\w.]+)|(\+))')


class JavaConstants:
    """The text of constants, by their names and by those with their class."""

    def __init__(self) -> None:
        self._by_name: dict[str, str] = {}

    def learn(self, source: str) -> None:
        """Take the constants of a file; those that are made of others may come before them."""
        owner = _CLASS.search(source)
        for name, expression in _CONSTANT.findall(source):
            if owner is not None:
                self._by_name[f"{owner[1]}.{name}"] = expression

    def value(self, expression: str, owner: str, depth: int = 0) -> str | None:
        """The text of a sum of literals and constants, as the class `owner` sees it; None: it is something else."""
        parts: list[str] = []
        place = 0
        expression = expression.strip()
        while place < len(expression):
            token = _TOKEN.match(expression, place)
            if token is None:
                return None
            literal, name, _ = token.groups()
            if name is not None:
                literal = self._constant(name, owner, depth)
                if literal is None:
                    return None
            parts.append(literal or "")
            place = token.end()
        return "".join(parts)

    def _constant(self, name: str, owner: str, depth: int) -> str | None:
        full = name if "." in name else f"{owner}.{name}"
        full = ".".join(full.split(".")[-2:])
        expression = self._by_name.get(full)
        return None if expression is None or depth > 9 else self.value(expression, full.split(".")[0], depth + 1)


def without_comments(source: str) -> str:
    """Java without its comments."""
    return _COMMENT.sub("", source)


def arguments(source: str, begin: int) -> list[str]:
    """The arguments of a call whose bracket opens before `begin`."""
    found, depth, quoted, start, place = list[str](), 1, False, begin, begin
    while depth and place < len(source):
        letter = source[place]
        if quoted:
            place += letter == "\\"
            quoted = letter != '"'
        elif letter == '"':
            quoted = True
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        if not quoted and ((letter == "," and depth == 1) or depth == 0):
            found.append(source[start:place])
            start = place + 1
        place += 1
    return found


# -- Flink -------------------------------------------------------------------------------------------------------------

#: Their options are those of a table, a reporter or an example, not keys of the configuration.
_OTHER_OPTIONS = re.compile(
    r"^flink-(annotations|architecture-tests|connectors|contrib|docs|end-to-end-tests|examples|external-resources"
    r"|formats|fs-tests|libraries/flink-state-processing-api|metrics|models|quickstart|test-utils-parent|tests"
    r"|walkthroughs)/|/(connectors?|descriptors|factories|watermark)/|^flink-table/.*/filesystem/|/StreamConfig\.java$"
)
#: In files of the documentation's tables: those of reporters and models have names without their prefix.
_OTHER_TABLES = re.compile(r"reporter|/metric_|model_|openai|triton|rest_v|gpu_driver|external_resource|_zh")
_OPTION = re.compile(r"(?<![\w.])(?:ConfigOptions\s*\.\s*)?key\s*\(|\.\s*with(?:Deprecated|Fallback)Keys?\s*\(")
#: Options of reporters and the like, whose keys follow another key.
_SUFFIX = re.compile(r"@Documentation\.SuffixOption\b[^;]*?;")
_OLD_CONSTANT = re.compile(r"\bString\s+(?!DEFAULT_|\w+_REPORTER_)\w+\s*=\s*\"([a-z][\w-]*(?:\.[\w-]+)+)\"\s*;")
_DOCUMENTED = re.compile(r"<h5>\s*([^<&\s]+)\s*</h5>")
_KEY = re.compile(r"[a-z][\w-]*(?:\.[\w-]+)+")
#: First words of what Flink sets for itself.
_INTERNAL = frozenset({"flink", "hidden", "internal"})
#: Keys of one word: most others are options of something else.
_WITHOUT_DOT = frozenset({
    "cleanup-strategy", "external-resources", "high-availability", "restart-strategy", "scheduler-mode",
})  # fmt: skip


def flink_keys(repository: Path, release: str) -> set[str]:
    """The keys of a release's options, deprecated spellings included."""
    sources: dict[str, str] = {}
    keys: set[str] = set()
    for path, text in files_of(repository, release):
        if path.endswith((".java", ".scala")) and "/src/main/" in path:
            sources[path] = without_comments(text)
        elif re.match(r"docs/(layouts/shortcodes|_includes)/generated/.*\.html$", path) and not _OTHER_TABLES.search(
            path
        ):
            keys.update(_DOCUMENTED.findall(text))
    constants = JavaConstants()
    for text in sources.values():
        constants.learn(text)
    for path, text in sources.items():
        if path.endswith("/ConfigConstants.java"):
            keys.update(_OLD_CONSTANT.findall(text))
        if "ConfigOption" in text and not _OTHER_OPTIONS.search(path):
            keys |= option_keys(text, constants)
    return {key for key in keys if (_KEY.fullmatch(key) and first_word(key) not in _INTERNAL) or key in _WITHOUT_DOT}


def first_word(key: str) -> str:
    """The part before the first dot."""
    return key.partition(".")[0]


def option_keys(source: str, constants: JavaConstants) -> set[str]:
    """The keys of the options in a file.

    >>> constants = JavaConstants()
    >>> source = 'class A { String P = "rest."; Object o = key(P + "port").withDeprecatedKeys("web.port"); }'
    >>> constants.learn(source)
    >>> sorted(option_keys(source, constants))
    ['rest.port', 'web.port']
    """
    owner = _CLASS.search(source)
    source = _SUFFIX.sub("", source)
    found: set[str] = set()
    for call in _OPTION.finditer(source):
        for argument in arguments(source, call.end()):
            key = constants.value(argument, owner[1] if owner else "")
            found |= {key} if key else set()
    return found


def write_flink_keys(repository: Path) -> None:
    """One key per line."""
    keys = set[str]().union(*(flink_keys(repository, release) for release in FLINK_RELEASES))
    first_words = set(map(first_word, keys))
    for release in OLDER_FLINK_RELEASES:
        keys |= {key for key in flink_keys(repository, release) if first_word(key) in first_words}
    write(FLINK_KEYS, repository, (*OLDER_FLINK_RELEASES, *FLINK_RELEASES), sorted(keys))


# -- Kafka -------------------------------------------------------------------------------------------------------------

_PROPERTY = re.compile(r"^([a-z][\w.]*) +\| +([*CP]) +\|(.*)\*Type: ([^*]+)\*", re.MULTILINE)
#: Types of what only C programs can set.
_OF_C = frozenset({"pointer", "see dedicated API"})
#: Share consumers are clients of their own, which nothing here uses.
_OF_SHARE_CONSUMERS = re.compile(r"only supported for share consumers|mode for share consumers")
_DEFINED = re.compile(r"\.\s*define(?:Internal)?\s*\(")
_KAFKA_CLIENTS = "clients/src/main/java/org/apache/kafka"
_KAFKA_OPTIONS = ("ConsumerConfig", "ProducerConfig", "SslConfigs", "SaslConfigs")


def librdkafka_names(repository: Path, release: str) -> list[str]:
    """Each property after the clients that take it: `*` both, `C` consumers, `P` producers."""
    ((_, text),) = files_of(repository, release, "CONFIGURATION.md")
    names = {
        f"{clients} {name}"
        for name, clients, said, kind in _PROPERTY.findall(text)
        if kind not in _OF_C and not _OF_SHARE_CONSUMERS.search(said)
    }
    return sorted(names)


def java_names(repository: Path, release: str) -> set[str]:
    """The properties of Java's consumers and producers."""
    constants = JavaConstants()
    sources = [without_comments(text) for path, text in files_of(repository, release, _KAFKA_CLIENTS)]
    for source in sources:
        constants.learn(source)
    found: set[str] = set()
    for source in sources:
        owner = _CLASS.search(source)
        if owner is not None and owner[1] in _KAFKA_OPTIONS:
            for call in _DEFINED.finditer(source):
                name = constants.value(arguments(source, call.end())[0], owner[1])
                found |= {name} if name else set()
    return {name for name in found if not name.startswith("internal.")}


def write_librdkafka_names(repository: Path) -> None:
    """One property per line, after its clients."""
    (release,) = LIBRDKAFKA_RELEASES
    write(LIBRDKAFKA_NAMES, repository, LIBRDKAFKA_RELEASES, librdkafka_names(repository, release))


def write_java_names(repository: Path) -> None:
    """One property per line."""
    names = set[str]().union(*(java_names(repository, release) for release in KAFKA_RELEASES))
    write(JAVA_NAMES, repository, KAFKA_RELEASES, sorted(names))


# -- the tables --------------------------------------------------------------------------------------------------------


def write(path: Path, repository: Path, releases: Sequence[str], lines: Sequence[str]) -> None:
    """Write a table under a head that names its source."""
    origin = ", ".join(described(repository, release) for release in releases)
    head = f"# From its sources at {origin}. Written by tools/key_tables.py; do not edit by hand.\n"
    path.write_text(head + "".join(f"{line}\n" for line in lines), encoding="utf-8")


def main() -> None:
    """Write the tables whose repositories are given."""
    parser = argparse.ArgumentParser(prog="python -m tools.key_tables", description=__doc__)
    tables = {"flink": write_flink_keys, "librdkafka": write_librdkafka_names, "kafka": write_java_names}
    for name in tables:
        parser.add_argument(f"--{name}", type=Path, metavar="FOLDER", help=f"a git repository of {name}")
    given = vars(parser.parse_args())
    for name, write_table in tables.items():
        if given[name] is not None:
            write_table(given[name])


if __name__ == "__main__":
    main()
