"""The contract of checkpoint stores, as tests: run them on a store of your own.

A subclass in your tests names the store; pytest finds the tests:

    class TestMyStore(StoreContract):
        @pytest.fixture
        def store(self):
            return MyStore(...)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import ClassVar

from rekindle.checkpoint.store.port import FileEntry, Store
from rekindle.errors import MissingFileError, StoreError

_MEGABYTE = 1 << 20


class StoreContract:
    """The contract of `rekindle.checkpoint.store.port.Store`; each test gets an empty store.

    >>> from rekindle.checkpoint.store.memory import MemoryStore
    >>> StoreContract().test_absent_means_absent(MemoryStore())
    """

    #: More bytes than any store sends in one piece.
    LARGE_BYTES: ClassVar[int] = 20 * _MEGABYTE
    WRITERS: ClassVar[int] = 4

    # -- put -----------------------------------------------------------------------------------------------------------

    def test_what_was_put_is_read(self, store: Store) -> None:
        """A file is read whole, with any content."""
        contents = {"a": b"", "b/c": b"\x00\xff", "b/d/e": bytes(range(256)) * 40}
        for path, data in contents.items():
            store.put(path, data)
        assert {path: store.read(path) for path in contents} == contents

    def test_put_replaces(self, store: Store) -> None:
        """The last content counts, even if it is shorter."""
        store.put("a", b"a long first content")
        store.put("a", b"short")
        assert store.read("a") == b"short"
        assert store.list() == [FileEntry("a", 5)]

    def test_put_takes_blocks(self, store: Store) -> None:
        """A put takes the content in blocks: many, none, or empty ones."""
        store.put("blocks", (b"%d," % i for i in range(1000)))
        store.put("none", iter(()))
        store.put("empty", iter([b"", b"x", b""]))
        assert store.read("blocks") == b"".join(b"%d," % i for i in range(1000))
        assert (store.read("none"), store.read("empty")) == (b"", b"x")

    def test_large_files(self, store: Store) -> None:
        """A file may be larger than one request, put whole or in blocks."""
        block = bytes(range(256)) * (_MEGABYTE // 256)
        store.put("blocks", (block for _ in range(self.LARGE_BYTES // _MEGABYTE)))
        store.put("whole", block * (self.LARGE_BYTES // _MEGABYTE))
        sizes = {entry.path: entry.size for entry in store.list()}
        assert sizes == {"blocks": self.LARGE_BYTES, "whole": self.LARGE_BYTES}
        for path in sizes:
            assert store.read(path, self.LARGE_BYTES - _MEGABYTE - 3) == block[-3:] + block
            assert store.read(path, 5 * _MEGABYTE - 2, 4) == block[-2:] + block[:2]

    def test_a_put_that_fails_leaves_what_was_there(self, store: Store) -> None:
        """If the content's iterator fails, no part of the content appears."""
        store.put("old", b"kept")
        for path in ("old", "new"):
            error = _error_of(lambda path=path: store.put(path, _failing_blocks()))  # type: ignore[misc]
            assert error is not None, "the put did not fail"
        assert store.read("old") == b"kept"
        assert [entry.path for entry in store.list()] == ["old"]

    def test_a_reader_sees_the_old_or_the_new(self, store: Store) -> None:
        """A reader never sees a mixture or a part."""
        versions = [bytes([n]) * 200_000 for n in range(12)]
        store.put("a", versions[0])
        done = threading.Event()
        seen: set[bytes] = set()

        def read() -> None:
            while not done.is_set():
                try:
                    seen.add(store.read("a"))
                except MissingFileError:
                    if store.conditional:
                        raise

        reader = _Thread(read)
        for version in versions:
            store.put("a", version)
        done.set()
        reader.result()
        assert seen <= set(versions)

    # -- put_if_absent -------------------------------------------------------------------------------------------------

    def test_absent_means_absent(self, store: Store) -> None:
        """Only the first content is kept, even if a later one is equal."""
        assert store.put_if_absent("a/b", b"first")
        assert not store.put_if_absent("a/b", b"second")
        assert not store.put_if_absent("a/b", b"first")
        assert store.read("a/b") == b"first"
        assert [entry.path for entry in store.list()] == ["a/b"]

    def test_absent_again_after_delete(self, store: Store) -> None:
        """A deleted file is absent."""
        assert store.put_if_absent("a", b"")
        store.delete("a")
        assert store.put_if_absent("a", b"again")
        assert store.read("a") == b"again"

    def test_one_of_many_writers_wins(self, store: Store) -> None:
        """One writer wins at each of several names, and the content is the winner's."""
        if not store.conditional:
            return
        for place in range(5):
            path = f"owners/{place}"
            together = threading.Barrier(self.WRITERS)

            def write(number: int, path: str = path, together: threading.Barrier = together) -> bool:
                together.wait(30)
                return store.put_if_absent(path, b"%d" % number)

            threads = [_Thread(lambda number=number: write(number)) for number in range(self.WRITERS)]  # type: ignore[misc]
            won = [number for number, thread in enumerate(threads) if thread.result()]
            assert len(won) == 1, f"writers {won} all believe they won"
            assert store.read(path) == b"%d" % won[0]

    # -- read ----------------------------------------------------------------------------------------------------------

    def test_ranges(self, store: Store) -> None:
        """A read returns at most so many bytes from an offset; fewer where the file ends."""
        store.put("a", b"0123456789")
        assert store.read("a", 4) == b"456789"
        assert store.read("a", 4, 3) == b"456"
        assert store.read("a", 0, 1) == b"0"
        assert store.read("a", 8, 100) == b"89"
        assert store.read("a", 10) == b""
        assert store.read("a", 10, 5) == b""
        assert store.read("a", 99, 5) == b""
        assert store.read("a", 3, 0) == b""

    def test_what_is_not_there_is_missing(self, store: Store) -> None:
        """A read of a missing file raises a typed error that names the file; a folder is no file."""
        store.put("folder/a", b"x")
        for read in (
            lambda: store.read("nothing"),
            lambda: store.read("nothing", 3, 4),
            lambda: store.read("nothing", 3, 0),
            lambda: store.read("folder"),
        ):
            error = _error_of(read)
            assert isinstance(error, MissingFileError), f"reading what is not there gave {error!r}"
            assert "nothing" in str(error) or "folder" in str(error)

    # -- list ----------------------------------------------------------------------------------------------------------

    def test_list_is_everything_below_a_folder(self, store: Store) -> None:
        """The list is recursive, sorted by path, with sizes; a folder with a longer name is another one."""
        for path, size in {"j/t/chk-10/m": 1, "j/t/chk-1/m": 2, "j/t/shared/x": 3, "j/tt/y": 4, "jj/z": 5}.items():
            store.put(path, b"x" * size)
        assert store.list("j/t") == [
            FileEntry("j/t/chk-1/m", 2),
            FileEntry("j/t/chk-10/m", 1),
            FileEntry("j/t/shared/x", 3),
        ]
        assert [entry.path for entry in store.list("j")] == ["j/t/chk-1/m", "j/t/chk-10/m", "j/t/shared/x", "j/tt/y"]
        assert [entry.size for entry in store.list()] == [2, 1, 3, 4, 5]

    def test_list_of_nothing_is_empty(self, store: Store) -> None:
        """Neither an empty store nor a folder that is not there is an error."""
        assert store.list() == []
        assert store.list("nothing/here") == []

    def test_names_come_back_as_they_were(self, store: Store) -> None:
        """Paths may have every character that the layout uses."""
        names = ["orders=20v1=2FEU/00000001-0a1b2c3d/shared/7-2-ab.12_x-0.state", "orders=20v1=2FEU/owners/00000001"]
        for name in names:
            store.put(name, name.encode())
        assert [entry.path for entry in store.list()] == names
        assert [entry.path for entry in store.list("orders=20v1=2FEU/owners")] == names[1:]
        assert [store.read(name) for name in names] == [name.encode() for name in names]

    # -- delete --------------------------------------------------------------------------------------------------------

    def test_delete(self, store: Store) -> None:
        """One call deletes one file, several, none, or missing ones."""
        for path in ("a", "b/c", "b/d", "e"):
            store.put(path, b"x")
        store.delete("a")
        store.delete("b/c", "nothing", "b/d", "no/folder")
        store.delete("a")
        store.delete()
        assert [entry.path for entry in store.list()] == ["e"]
        store.put("b/c", b"again")
        assert store.read("b/c") == b"again"

    def test_many_deletes(self, store: Store) -> None:
        """One call deletes as many files as an old job has."""
        paths = [f"shared/{number}" for number in range(60)]
        for path in paths:
            store.put(path, b"")
        store.delete(*paths)
        assert store.list() == []

    # -- paths ---------------------------------------------------------------------------------------------------------

    def test_paths_stay_below_the_root(self, store: Store) -> None:
        """Paths come from manifests, which may come from anywhere: every method refuses a path outside the root."""
        for path in ("../a", "a/../../b", "/etc/passwd", "a//b", "./a", "a/.", "a\x00b", "a\\b", "a/"):
            for call in (
                lambda path=path: store.put(path, b"x"),
                lambda path=path: store.put_if_absent(path, b"x"),
                lambda path=path: store.read(path),
                lambda path=path: store.list(path),
                lambda path=path: store.delete(path),
            ):
                error = _error_of(call)
                assert isinstance(error, StoreError), f"{path!r} was taken"
        assert store.list() == []


class _Thread:
    """Runs a function on a thread; `result` waits for it and raises its error."""

    def __init__(self, run: Callable[[], object]) -> None:
        self._run = run
        self._outcome: object = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._call, daemon=True)
        self._thread.start()

    def _call(self) -> None:
        try:
            self._outcome = self._run()
        except BaseException as error:
            self._error = error

    def result(self) -> object:
        self._thread.join(60)
        assert not self._thread.is_alive(), "a call of the store did not come back"
        if self._error is not None:
            raise self._error
        return self._outcome


def _failing_blocks() -> Iterator[bytes]:
    yield b"x" * _MEGABYTE
    raise ValueError("the content broke off")


def _error_of(call: Callable[[], object]) -> Exception | None:
    try:
        call()
    except Exception as error:
        return error
    return None
