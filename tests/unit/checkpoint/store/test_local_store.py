"""Stores opened by path or URL, and the local one: durable writes, permissions, links, the faults of a disk."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rekindle.checkpoint.store.local import LocalStore
from rekindle.checkpoint.store.memory import MemoryStore
from rekindle.checkpoint.store.open_store import check_usable, open_store
from rekindle.checkpoint.store.options import open_configured, store_options
from rekindle.checkpoint.store.port import Store
from rekindle.common import Configuration
from rekindle.errors import ConfigurationError, MissingFileError, StoreError


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "checkpoints")


@pytest.mark.parametrize(
    "form", ["{}", "file:{}", "file://{}", "FILE:{}", "file://localhost{}", "file:///{}", "{}/", "file://{}/"]
)
def test_a_directory_by_path_or_url(tmp_path: Path, form: str) -> None:
    store = open_store(form.format(tmp_path))
    store.put("a", b"x")
    assert (tmp_path / "a").read_bytes() == b"x"


def test_a_relative_path_is_of_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("here")
    monkeypatch.chdir("/")
    store.put("a", b"x")
    assert (tmp_path / "here" / "a").read_bytes() == b"x"
    assert store.url == (tmp_path / "here").as_uri()


@pytest.mark.parametrize("name", ["a?b", "a#b", "a?", "word=20count", "100%25"])
def test_a_name_in_an_address_is_the_whole_name(tmp_path: Path, name: str) -> None:
    store = open_store(f"file:{tmp_path}/{name}")
    store.put("a", b"x")
    assert (tmp_path / name.replace("%25", "%") / "a").exists()
    assert open_store(store.url).read("a") == b"x"


def test_a_url_is_unquoted(tmp_path: Path) -> None:
    store = open_store((tmp_path / "with space").as_uri())
    store.put("a", b"x")
    assert (tmp_path / "with space" / "a").exists()
    assert open_store(store.url).read("a") == b"x"


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("ftp://host/x", "use a path, file:///, s3://, gs:// or hdfs:// instead of ftp://"),
        ("file://otherhost/x", "names a host, 'otherhost'"),
        ("file:///", "names no directory"),
        ("", "empty text"),
        ("s3://", "cannot be opened"),
        ("s3:/bucket/x", "write s3://bucket/x"),
        ("s3://bucket/x?y", "write %3F or %23"),
        ("gs://bucket/x#y", "write %3F or %23"),
        ("file:folder", "names no absolute directory: write file:///directory"),
        ("file:///data%00", "null byte"),
    ],
)
def test_what_is_no_store_is_refused(url: str, sentence: str) -> None:
    with pytest.raises(StoreError, match=sentence):
        open_store(url)


def test_hdfs_without_hadoop_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_HOME", "/nowhere")
    monkeypatch.setenv("ARROW_LIBHDFS_DIR", "/nowhere")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(StoreError, match="HADOOP_HOME"):
        open_store("hdfs://namenode:8020/checkpoints")


def test_without_obstore_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(StoreError, match="extra 'objectstore'"):
        open_store("s3://bucket/x")


def test_memory() -> None:
    assert isinstance(open_store("memory://"), MemoryStore)


# -- faults ------------------------------------------------------------------------------------------------------------


def fail_with(number: int) -> Callable[..., Any]:
    def failing(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return failing


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_an_unwritable_directory_is_one_sentence(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(os, "mkdir", fail_with(number))
    with pytest.raises(StoreError, match=r"^The checkpoint directory \S+ cannot be written \([a-z -]+\): make it writ"):
        check_usable(store)


def test_a_file_in_the_place_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    store = LocalStore(tmp_path / "file")
    with pytest.raises(StoreError, match="Cannot write 'a'") as caught:
        store.put("a", b"x")
    assert not caught.value.retryable
    with pytest.raises(MissingFileError):
        store.read("a")
    assert store.list() == []


@pytest.mark.parametrize(
    ("number", "retryable"), [(errno.ENOSPC, True), (errno.EIO, True), (errno.ENAMETOOLONG, False)]
)
def test_what_may_pass_is_retryable(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, number: int, retryable: bool
) -> None:
    monkeypatch.setattr(os, "fsync", fail_with(number))
    with pytest.raises(StoreError, match=os.strerror(number).lower()) as caught:
        store.put("a", b"x")
    assert caught.value.retryable is retryable
    monkeypatch.undo()
    assert store.list() == []


def test_a_disk_without_links_is_said(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", fail_with(errno.EOPNOTSUPP))
    with pytest.raises(StoreError, match="Cannot write 'a'"):
        store.put_if_absent("a", b"x")
    assert store.list() == []


def test_a_link_whose_answer_was_lost_counts(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def link_then_lose_the_answer(source: Any, target: Any) -> None:
        link(source, target)
        raise FileExistsError(errno.EEXIST, "the client asked twice")

    monkeypatch.setattr(os, "link", link_then_lose_the_answer)
    assert store.put_if_absent("a", b"x")
    assert not LocalStore(store.directory).list()[1:]


# -- durability --------------------------------------------------------------------------------------------------------


def test_content_is_synced_before_its_name_and_the_name_after(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("folder/before", b"")
    steps: list[str] = []
    fsync, replace, link = os.fsync, os.replace, os.link

    def kind(descriptor: int) -> str:
        return "folder" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file"

    monkeypatch.setattr(os, "fsync", lambda d: (steps.append(f"sync {kind(d)}"), fsync(d)))
    monkeypatch.setattr(os, "replace", lambda a, b: (steps.append("name"), replace(a, b)))
    monkeypatch.setattr(os, "link", lambda a, b: (steps.append("name"), link(a, b)))
    store.put("folder/a", b"x")
    assert steps == ["sync file", "name", "sync folder"]
    steps.clear()
    store.put_if_absent("folder/b", b"x")
    assert steps == ["sync file", "name", "sync folder"]
    steps.clear()
    store.put("new/folder/c", b"x")
    assert steps == ["sync folder", "sync folder", "sync file", "name", "sync folder"]


def test_a_process_killed_while_writing_leaves_no_file_of_that_name(store: LocalStore) -> None:
    program = f"""
        import os, signal
        from pathlib import Path
        from rekindle.checkpoint.store.local import LocalStore

        def blocks():
            yield b"x" * 100_000
            os.kill(os.getpid(), signal.SIGKILL)

        LocalStore(Path({str(store.directory)!r})).put("t/shared/3-1-op-0.state", blocks())
    """
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False, timeout=60)
    assert killed.returncode == -9
    (left,) = store.list()
    assert left.path.startswith("t/shared/3-1-op-0.state.")
    assert left.path.endswith(".part")
    with pytest.raises(MissingFileError):
        store.read("t/shared/3-1-op-0.state")


# -- places ------------------------------------------------------------------------------------------------------------


def test_links_do_not_lead_out(store: LocalStore, tmp_path: Path) -> None:
    store.put("inside", b"x")
    (tmp_path / "secret").write_bytes(b"secret")
    (store.directory / "link").symlink_to(tmp_path / "secret")
    (store.directory / "folder").symlink_to(tmp_path)
    for path in ("link", "folder/secret"):
        with pytest.raises(StoreError, match="leads out of the checkpoint directory"):
            store.read(path)
    with pytest.raises(StoreError, match="leads out"):
        store.put("folder/new", b"x")
    assert [entry.path for entry in store.list()] == ["inside"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoints", "secret"]


def test_a_root_that_is_itself_a_link_works(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    store: Store = LocalStore(tmp_path / "link")
    store.put("a/b", b"x")
    assert (tmp_path / "real" / "a" / "b").exists()
    assert store.list()[0].path == "a/b"


def test_empty_folders_go_and_the_root_stays(store: LocalStore) -> None:
    store.put("j/t/chk-1/_metadata", b"x")
    store.put("j/t/chk-2/_metadata", b"x")
    store.delete("j/t/chk-1/_metadata")
    assert sorted(path.name for path in (store.directory / "j" / "t").iterdir()) == ["chk-2"]
    store.delete("j/t/chk-2/_metadata")
    assert list(store.directory.iterdir()) == []


def test_a_folder_that_is_removed_while_a_file_comes(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    real_open = os.open

    def open_once_too_late(path: Any, flags: int, *rest: Any) -> int:
        if str(path).endswith(".part") and not opened:
            opened.append(path)
            os.rmdir(store.directory / "folder")
        return real_open(path, flags, *rest)

    monkeypatch.setattr(os, "open", open_once_too_late)
    store.put("folder/a", b"x")
    assert opened
    assert store.read("folder/a") == b"x"


def test_a_store_that_forgets_is_found_out() -> None:
    class Forgetful(MemoryStore):
        def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
            return b""

    with pytest.raises(StoreError, match="does not give back"):
        check_usable(Forgetful())


def test_a_store_that_overwrites_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    class Overwriting(MemoryStore):
        def put_if_absent(self, path: str, data: bytes) -> bool:
            self.put(path, data)
            return True

    store = Overwriting()
    check_usable(store)
    assert "run only one driver" in caplog.text
    assert store.list() == []


def test_a_folder_that_can_never_be_made_is_no_matter_for_a_restart() -> None:
    with pytest.raises(StoreError, match="cannot be made: choose") as caught:
        check_usable(LocalStore(Path("/proc/rekindle")))
    assert not caught.value.retryable


# -- who may read it ---------------------------------------------------------------------------------------------------


def modes(directory: Path) -> dict[str, int]:
    """Of everything that was made below a directory, itself included."""
    return {str(path.relative_to(directory)): stat.S_IMODE(path.stat().st_mode) for path in directory.rglob("*")}


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_only_the_owner_may_read_what_is_stored(tmp_path: Path, usual_umask: None) -> None:
    store = LocalStore(tmp_path / "new" / "checkpoints")
    store.put("orders/a.state", b"x")
    store.put_if_absent("orders/chk-1/_metadata", b"x")
    folders = {"new", "new/checkpoints", "new/checkpoints/orders", "new/checkpoints/orders/chk-1"}
    made = modes(tmp_path)
    assert {path: mode for path, mode in made.items() if path in folders} == dict.fromkeys(folders, 0o700)
    assert {mode for path, mode in made.items() if path not in folders} == {0o600}


def test_a_setting_lets_others_read_too(tmp_path: Path, usual_umask: None) -> None:
    """As the store is opened by the driver and, with what the driver sends it, by a slot."""
    keys = {"rekindle.checkpointing.file-permissions": "640"}
    options = store_options(Configuration.from_dict(keys))
    for url in (str(tmp_path / "plain"), (tmp_path / "url").as_uri()):
        open_configured(url, options).put("orders/a.state", b"x")
    assert modes(tmp_path) == {
        "plain": 0o750,
        "plain/orders": 0o750,
        "plain/orders/a.state": 0o640,
        "url": 0o750,
        "url/orders": 0o750,
        "url/orders/a.state": 0o640,
    }


@pytest.mark.parametrize("text", ["rw-r-----", "0x1ff", "1777", "77", "40"])
def test_permissions_that_are_none_or_shut_the_owner_out_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"rekindle\.checkpointing\.file-permissions"):
        store_options(Configuration.from_dict({"rekindle.checkpointing.file-permissions": text}))


def test_a_directory_that_is_there_keeps_its_permissions(tmp_path: Path, usual_umask: None) -> None:
    (tmp_path / "there").mkdir(mode=0o755)
    LocalStore(tmp_path / "there").put("a", b"x")
    assert modes(tmp_path)["there"] == 0o755
