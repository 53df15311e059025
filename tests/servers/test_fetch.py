"""Jars are fetched once, whole or not at all, and a failure is one sentence."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tools.servers import fetch
from tools.servers.fetch import CACHE_VARIABLE, JarList, cache_folder, fetch_jars
from tools.servers.server_error import ServerError

POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>rekindle.servers</groupId><artifactId>none</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>rekindle.servers</groupId><artifactId>no-such-jar</artifactId><version>1</version></dependency>
  </dependencies>
</project>
"""


@pytest.fixture
def jars(tmp_path: Path) -> JarList:
    """A list with a jar that Maven Central does not have."""
    (tmp_path / "pom.xml").write_text(POM)
    return JarList("Nothing", tmp_path / "pom.xml", megabytes=1)


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The downloads that were made; each is slow and brings one jar."""
    made: list[Path] = []

    def run_ivy(jars: JarList, partial: Path) -> None:
        made.append(partial)
        threading.Event().wait(0.2)
        for folder in ("ivy", "libs"):
            (partial / folder).mkdir()
        (partial / "libs" / "one.jar").touch()

    monkeypatch.setattr(fetch, "_run_ivy", run_ivy)
    return made


def names_in(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir() if path.suffix != ".lock")


def test_a_failed_download_is_one_sentence_and_leaves_nothing(
    jars: JarList, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ServerError) as raised:
        fetch_jars(jars, tmp_path / "cache")

    message = str(raised.value)
    assert message.startswith("Nothing could not be downloaded from Maven Central (")
    assert "no-such-jar" in message
    assert message.endswith("set REKINDLE_SERVERS_CACHE to a folder that another clone has filled.")
    assert "\n" not in message
    assert names_in(tmp_path / "cache") == []
    assert capfd.readouterr().err.startswith("servers: downloading Nothing from Maven Central (about 1 MB, once")


def test_those_who_come_at_once_share_one_download(jars: JarList, tmp_path: Path, downloads: list[Path]) -> None:
    with ThreadPoolExecutor(4) as threads:
        folders = set(threads.map(lambda _: fetch_jars(jars, tmp_path / "cache"), range(4)))

    assert len(downloads) == 1
    assert [path.name for path in folders.pop().iterdir()] == ["one.jar"]
    assert not folders


def test_what_a_killed_download_left_is_removed(jars: JarList, tmp_path: Path, downloads: list[Path]) -> None:
    cache, name = tmp_path / "cache", jars.folder_name()
    (cache / f"{name}.partial-killed" / "libs").mkdir(parents=True)
    (cache / name / "libs").mkdir(parents=True)

    fetch_jars(jars, cache)

    assert names_in(cache) == [name]
    assert sorted(path.name for path in (cache / name).iterdir()) == ["complete", "libs"]


def test_a_changed_list_is_fetched_anew(jars: JarList, tmp_path: Path, downloads: list[Path]) -> None:
    fetch_jars(jars, tmp_path / "cache")
    jars.pom.write_text(POM.replace("no-such-jar", "another"))
    fetch_jars(jars, tmp_path / "cache")

    assert len(downloads) == 2


def test_the_cache_is_the_clones_unless_the_environment_names_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    assert cache_folder() == Path(fetch.__file__).parents[2] / ".cache" / "servers"
    monkeypatch.setenv(CACHE_VARIABLE, "/elsewhere")
    assert cache_folder() == Path("/elsewhere")
