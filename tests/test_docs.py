"""The documentation runs: Python snippets are executed, links and the paths it names exist."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tools import module_index

REPOSITORY = Path(__file__).resolve().parents[1]
PAGES = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")])
FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
#: A page runs several jobs; on a busy machine each takes its time.
PAGE_TIMEOUT_S = 400
#: Flags of fences that name a server.
SERVERS = ("kafka", "hbase", "postgres")
NAMED_PAGE = re.compile(r"\bdocs/[\w./-]*\w\.md\b")
NAMED_PATH = re.compile(r"`((?:src|tests|docs|tools|examples|benchmarks)/[\w./-]*\w/?)`")


@dataclass(frozen=True)
class Snippet:
    """A fenced piece of Python; ``line`` is where its first line stands in the page."""

    page: Path
    line: int
    code: str
    runs: bool
    #: The server that it needs, by the name of its fixture.
    server: str | None = None


def snippets_of(page: Path) -> list[Snippet]:
    text = page.read_text(encoding="utf-8")
    found = []
    for fence in FENCE.finditer(text):
        language, *flags = fence["info"].split() or [""]
        if language == "python":
            indent = len(fence["indent"])
            code = "\n".join(line[indent:] for line in fence["body"].splitlines())
            line = text.count("\n", 0, fence.start("body")) + 1
            server = next((flag for flag in flags if flag in SERVERS), None)
            found.append(Snippet(page, line, code, "no-run" not in flags, server))
    return found


def name_of(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


@pytest.mark.parametrize("page", [page for page in PAGES if snippets_of(page)], ids=name_of)
def test_snippets_are_python(page: Path) -> None:
    for snippet in snippets_of(page):
        # The blank lines before make a syntax error name the page's own line.
        assert compile("\n" * (snippet.line - 1) + snippet.code, str(page), "exec")


def server_of(page: Path) -> str | None:
    return next((snippet.server for snippet in snippets_of(page) if snippet.server is not None), None)


RUNNING = [page for page in PAGES if any(snippet.runs for snippet in snippets_of(page))]


@pytest.mark.timeout(PAGE_TIMEOUT_S)
@pytest.mark.parametrize("page", [page for page in RUNNING if server_of(page) is None], ids=name_of)
def test_snippets_run(page: Path, spark: Any) -> None:
    run_snippets(page, {})


@pytest.mark.parametrize("page", [page for page in RUNNING if server_of(page) == "kafka"], ids=name_of)
def test_snippets_run_with_a_kafka_broker(page: Path, spark: Any, kafka: Any) -> None:
    run_snippets(page, {"bootstrap_servers": kafka.bootstrap_servers})


@pytest.mark.parametrize("page", [page for page in RUNNING if server_of(page) == "hbase"], ids=name_of)
def test_snippets_run_with_an_hbase(page: Path, spark: Any, hbase: Any) -> None:
    run_snippets(page, {"thrift_servers": hbase.address})


@pytest.mark.parametrize("page", [page for page in RUNNING if server_of(page) == "postgres"], ids=name_of)
def test_snippets_run_with_a_postgresql_server(page: Path, spark: Any, postgres: Any) -> None:
    names = ("jdbc_url", "user", "password", "conninfo")
    run_snippets(page, {name: getattr(postgres, name) for name in names})


def run_snippets(page: Path, names: dict[str, Any]) -> None:
    """The snippets of one page are one program, in order."""
    namespace: dict[str, Any] = {"__name__": "__main__", **names}
    for snippet in snippets_of(page):
        if snippet.runs:
            exec(compile("\n" * (snippet.line - 1) + snippet.code, str(page), "exec"), namespace)
    assert len(namespace) > 1


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_and_paths_lead_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    targets = [target.split("#")[0] for target in LINK.findall(text) if "://" not in target]
    missing = [target for target in targets if target and not (page.parent / target).exists()]
    missing += [path for path in NAMED_PATH.findall(text) if not (REPOSITORY / path).exists()]
    assert missing == []


def test_pages_that_messages_name_are_there() -> None:
    files = [path for path in (REPOSITORY / "src").rglob("*") if path.suffix in (".py", ".json")]
    named = {page for path in files for page in NAMED_PAGE.findall(path.read_text(encoding="utf-8"))}
    assert "docs/guide/pyflink-names.md" in named
    assert [page for page in sorted(named) if not (REPOSITORY / page).exists()] == []


def engine_packages() -> list[str]:
    """Every package of the engine, and every module that stands beside them."""
    source = REPOSITORY / "src" / "rekindle"
    packages = [path.parent for path in source.rglob("__init__.py") if path.parent != source]
    modules = [path for path in source.glob("*.py") if path.name != "__init__.py"]
    return sorted(path.relative_to(REPOSITORY).as_posix() for path in [*packages, *modules])


@pytest.mark.parametrize("package", engine_packages())
def test_the_architecture_page_links_every_package(package: str) -> None:
    page = REPOSITORY / "docs" / "architecture.md"
    linked = {(page.parent / target).resolve() for target in LINK.findall(page.read_text(encoding="utf-8"))}
    assert REPOSITORY / package in linked


def test_the_index_of_modules_is_what_the_docstrings_say() -> None:
    assert module_index.PAGE.read_text(encoding="utf-8") == module_index.page_text(), "docs/modules.md: run make index"


def test_every_module_has_a_sentence_in_the_index() -> None:
    modules = [path for path in module_index.SOURCES.rglob("*.py") if path.name != "__init__.py"]
    assert [path.name for path in modules if not module_index.first_sentence(path).endswith((".", "!", "?"))] == []


def test_the_fence_reader_finds_lines_flags_and_indented_fences(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A\n\n```python\nx = 1\n```\n- b\n  ```python no-run\n  y = 2\n  ```\n```sh\nls\n```\n")
    assert snippets_of(page) == [Snippet(page, 4, "x = 1", True), Snippet(page, 8, "y = 2", False)]


def word_count_script(folder: Path, old: str = "", new: str = "") -> Path:
    code = snippets_of(REPOSITORY / "README.md")[0].code
    assert old in code
    script = folder / "word_count.py"
    script.write_text(code.replace(old, new) if old else code, encoding="utf-8")
    return script


def run_script(script: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=300, check=False, cwd=script.parent
    )


@pytest.mark.integration
@pytest.mark.timeout(400)
def test_the_readme_begins_with_the_commands_of_a_clone() -> None:
    beginning, _, rest = (REPOSITORY / "README.md").read_text().partition("\n- ")
    targets = re.findall(r"^([a-z]+):.*## ", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    named = re.findall(r"`make ([a-z]+)`", beginning)
    assert rest
    assert sorted(named) == ["demo", "test"]
    assert set(named) <= set(targets)


def test_the_word_count_of_the_readme_runs_pasted_into_a_file(tmp_path: Path) -> None:
    answer = run_script(word_count_script(tmp_path))
    assert answer.returncode == 0, answer.stderr
    counted = re.findall(r"\('?(\w+)'?, ?(\d+)\)", answer.stdout)
    highest = {word: max(int(n) for w, n in counted if w == word) for word, _ in counted}
    assert highest == {"to": 2, "be": 2, "or": 1, "not": 1, "that": 1, "is": 1, "the": 1, "question": 1}


@pytest.mark.integration
@pytest.mark.timeout(400)
def test_a_typo_in_the_word_count_is_named_with_its_line(tmp_path: Path) -> None:
    script = word_count_script(tmp_path, "line.split()", "line.spilt()")
    line = next(n for n, text in enumerate(script.read_text().splitlines(), 1) if "spilt" in text)
    answer = run_script(script)
    assert answer.returncode != 0
    assert "has no attribute 'spilt'" in answer.stderr
    assert re.search(rf'word_count\.py", line {line}\b', answer.stderr)
