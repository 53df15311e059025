"""Archives and packages of a job: settings, limits, what is refused, and where they are for functions."""

from __future__ import annotations

import importlib
import io
import os
import stat
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from rekindle.common import Configuration
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.datastream.python_dependencies import PythonDependencies
from rekindle.errors import ConfigurationError, GraphError, SerializationError
from rekindle.graph import unpack_archive as unpacking
from rekindle.graph.ship_dependencies import place_dependencies, ship_dependencies
from rekindle.graph.unpack_archive import unpack_archive
from tests.support.tiny_wheel import tiny_wheel


def zipped(**files: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return stream.getvalue()


def linked(name: str, target: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        info = zipfile.ZipInfo(name)
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, target)
        archive.writestr("after.txt", "a")
        archive.writestr(f"{name}/below.txt", "b")
    return stream.getvalue()


def tarred(kind: bytes, name: str, link: str = "") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, link
        archive.addfile(info)
    return stream.getvalue()


def test_zip_and_tar_archives_are_unpacked_with_their_links_and_permissions(tmp_path: Path) -> None:
    (tmp_path / "in" / "bin").mkdir(parents=True)
    script = tmp_path / "in" / "bin" / "run"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    (tmp_path / "in" / "again").symlink_to("bin/run")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "in", "top")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.write(script, "top/bin/run")
    for name in ("a.tar.gz", "a.zip"):
        target = tmp_path / f"out-{name}"
        unpack_archive((tmp_path / name).read_bytes(), name, str(target))
        assert (target / "top" / "bin" / "run").read_text() == "#!/bin/sh\n"
        assert os.access(target / "top" / "bin" / "run", os.X_OK)
    assert (tmp_path / "out-a.tar.gz" / "top" / "again").resolve() == tmp_path / "out-a.tar.gz" / "top" / "bin" / "run"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (zipped(**{"../evil.txt": "x"}), "entry '../evil.txt', which leads out of it"),
        (zipped(**{"a/../../evil.txt": "x"}), "which leads out of it"),
        (zipped(**{"/etc/evil.txt": "x"}), "which leads out of it"),
        (linked("inside", "/etc"), "the link 'inside' to '/etc', which leads out of it"),
        (linked("inside", "../.."), "which leads out of it"),
        (linked("inside", "after.txt"), "entry 'inside/below.txt' below a link"),
        (tarred(tarfile.SYMTYPE, "a", "../../x"), "which leads out of it"),
        (tarred(tarfile.LNKTYPE, "a", "../x"), "which leads out of it"),
        (tarred(tarfile.CHRTYPE, "device"), "'device', which is no file"),
        (b"no archive at all", "cannot be unpacked"),
    ],
    ids=range(10),  # the bytes of an archive hold the time
)
def test_archives_that_lead_out_of_their_directory_are_refused(tmp_path: Path, content: bytes, sentence: str) -> None:
    target = tmp_path / "deep" / "target"
    with pytest.raises(SerializationError) as raised:
        unpack_archive(content, "evil.zip", str(target))
    assert sentence in str(raised.value)
    assert "evil.zip" in str(raised.value)
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert all(path.is_relative_to(target) for path in written)


def test_archives_are_unpacked_within_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "LARGEST_BYTES", 1 << 20)
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", b"\0" * (8 << 20))
    with pytest.raises(SerializationError, match="unpacks to more than 1 MiB"):
        unpack_archive(bomb.getvalue(), "bomb.zip", str(tmp_path / "bomb"))
    monkeypatch.setattr(unpacking, "MOST_ENTRIES", 2)
    with pytest.raises(SerializationError, match="more than 2 entries"):
        unpack_archive(zipped(a="", b="", c=""), "many.zip", str(tmp_path / "many"))


def test_methods_and_keys_say_the_same(tmp_path: Path) -> None:
    archive = tmp_path / "data.zip"
    archive.write_bytes(zipped(a="1"))
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("tinydep\n")
    env = StreamExecutionEnvironment.get_execution_environment()
    env.add_python_archive(str(archive))
    env.add_python_archive(str(archive), "data")
    env.set_python_requirements(str(requirements), str(tmp_path))
    env.set_python_executable("data/bin/python")
    by_method = PythonDependencies.of(env.get_configuration())
    by_key = PythonDependencies.of(
        Configuration.from_dict(
            {
                "python.archives": f"{archive},{archive}#data",
                "python.requirements": f"{requirements}#{tmp_path}",
                "python.executable": "data/bin/python",
            }
        )
    )
    assert by_method == by_key
    assert [archive.target for archive in by_method.archives] == ["data.zip", "data"]
    assert by_method.archive_of_executable() == by_method.archives[1]


def test_what_cannot_be_used_is_refused_when_it_is_set(tmp_path: Path) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(GraphError, match=r"there is no '.*none\.zip'"):
        env.add_python_archive(str(tmp_path / "none.zip"))
    (tmp_path / "text.txt").write_text("text")
    with pytest.raises(GraphError, match="none that can be unpacked"):
        env.add_python_archive(str(tmp_path / "text.txt"))
    (tmp_path / "a.zip").write_bytes(zipped())
    with pytest.raises(GraphError, match="a directory of one name"):
        env.add_python_archive(str(tmp_path / "a.zip"), "../out")
    with pytest.raises(GraphError, match="there is no"):
        env.set_python_requirements("no/requirements.txt")
    with pytest.raises(GraphError, match="copy it there first"):
        env.set_python_requirements("s3://bucket/requirements.txt")
    twice = Configuration.from_dict({"python.archives": f"{tmp_path}/a.zip,{tmp_path}/a.zip"})
    with pytest.raises(GraphError, match=r"Two archives are unpacked into 'a\.zip'"):
        PythonDependencies.of(twice)


@pytest.mark.timeout(600)  # pip takes seconds, and minutes on a busy machine
def test_functions_find_archives_in_their_working_directory_and_import_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_wheel(tmp_path / "wheels", "tinydep_of_unit_test", 41)
    (tmp_path / "requirements.txt").write_text("tinydep_of_unit_test\n")
    (tmp_path / "data.zip").write_bytes(zipped(**{"words/a.txt": "to be"}))
    settings = {
        "python.archives": f"{tmp_path}/data.zip#data",
        "python.requirements": f"{tmp_path}/requirements.txt#{tmp_path}/wheels",
    }
    shipped = ship_dependencies(Configuration.from_dict(settings))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    place_dependencies(shipped, str(tmp_path / "slot"))
    assert Path("data/words/a.txt").read_text() == "to be"
    assert importlib.import_module("tinydep_of_unit_test").answer() == 41
    assert sys.path[0] == str(tmp_path / "slot" / "packages")
    del sys.modules["tinydep_of_unit_test"]


@pytest.mark.timeout(600)
def test_a_package_that_cannot_be_had_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("no-such-package-of-anyone==7\n")
    setting = {"python.requirements": f"{tmp_path}/requirements.txt#{tmp_path}"}
    with pytest.raises(ConfigurationError) as raised:
        ship_dependencies(Configuration.from_dict(setting))
    sentence = str(raised.value)
    assert sentence.startswith(f"The packages of {tmp_path}/requirements.txt could not be installed from {tmp_path}: ")
    assert "No matching distribution found for no-such-package-of-anyone==7" in sentence
    assert "\n" not in sentence
