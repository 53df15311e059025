"""The database of one slot: RocksDB without a log, because checkpoints hold the truth. All its operators share it."""

from __future__ import annotations

import os
import shutil
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, starmap
from operator import itemgetter
from pathlib import Path
from threading import Event
from typing import Any, Final
from uuid import uuid4

from rekindle.errors import ConfigurationError, RekindleError, StateBackendError
from rekindle.runtime.scratch_folders import keep_from_others
from rekindle.runtime.state.rocksdb.memory_shares import MemoryShares

#: An entry to write; None removes it.
Write = tuple[bytes, bytes | None]
#: Entries with their keys.
Entries = Iterable[tuple[bytes, bytes]]

#: How RocksDB's message ends when a write would have to wait; other messages have paths in them.
_STALLED: Final = "Write stall"
_entry_key = itemgetter(0)
_STALL_PAUSE_S: Final = 0.02
#: A read from the page cache copies a block whole; smaller ones make the index larger than what it saves.
_BLOCK_BYTES: Final = 4 << 10
_METADATA_BLOCK_BYTES: Final = 4 << 10
_BLOOM_BITS: Final = 10
_LIVE_BYTES: Final = ("rocksdb.estimate-live-data-size", "rocksdb.cur-size-all-mem-tables")
_READAHEAD_BYTES: Final = 2 << 20
_FILES_AT_ONCE: Final = 64
#: Fewer bytes than this are cheaper to write than to ingest as a file.
_FILE_BYTES: Final = 128 << 10
_LEVEL_BUFFERS: Final = 16
#: Ingested files are read back into the page cache while they are such a part of the memory that is available.
_CACHED_SHARE: Final = 4
#: Linux reads no more for one request than what a device reads ahead.
_ADVISED_BYTES: Final = 128 << 10
_MISSING: Final = (
    "State backend 'rocksdb' needs the package rocksdict, which is not installed: run pip install 'rekindle[rocksdb]', "
    "or leave out state.backend.type."
)


def _first_bytes(entries: Iterator[tuple[bytes, bytes]], size: int) -> list[tuple[bytes, bytes]]:
    """Take entries until they have this size together."""
    taken = []
    for key, value in entries:
        taken.append((key, value))
        size -= len(key) + len(value)
        if size <= 0:
            break
    return taken


def _available_bytes() -> int:
    """The memory that programs could still get, the page cache included; 0 if the system does not tell."""
    with suppress(OSError), open("/proc/meminfo") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    return 0


def _read_ahead(file: str) -> None:
    """Ask the system to read a file into its page cache, without waiting for it."""
    with suppress(OSError):
        opened = os.open(file, os.O_RDONLY)
        try:
            for begin in range(0, os.fstat(opened).st_size, _ADVISED_BYTES):
                os.posix_fadvise(opened, begin, _ADVISED_BYTES, os.POSIX_FADV_WILLNEED)
        finally:
            os.close(opened)


def rocksdict() -> Any:
    """The package; ConfigurationError if it is not installed."""
    try:
        import rocksdict as package
    except ImportError as error:
        raise ConfigurationError(_MISSING) from error
    return package


class ScratchDatabase:
    """A RocksDB in a folder of its own, which `close` removes. Every method may be called on any thread."""

    def __init__(self, folder: Path, shares: MemoryShares) -> None:
        self._package = rocksdict()
        self._folder = folder / f"rocksdb-{uuid4().hex[:12]}"
        self._files = self._folder / "ingest"
        self._ingested_bytes = 0
        self._writing = self._package.WriteOptions()
        self._writing.disable_wal = True
        # A stalled write would hold the interpreter's lock, and heartbeats with it: rather pause in Python.
        self._writing.no_slowdown = True
        self._options = self._database_options(shares)
        try:
            self._folder.mkdir(parents=True)
            keep_from_others(str(self._folder))
            self._files.mkdir()
            self._database = self._package.Rdict(str(self._folder / "db"), self._options)
        except Exception as error:
            raise self._failed("be opened", error) from error

    def _database_options(self, shares: MemoryShares) -> Any:
        package = self._package
        blocks = package.BlockBasedOptions()
        self.block_cache = package.Cache(shares.block_cache_bytes)
        blocks.set_block_cache(self.block_cache)
        blocks.set_block_size(_BLOCK_BYTES)
        blocks.set_bloom_filter(_BLOOM_BITS, False)
        # A cold read at ten million keys takes a quarter of the time with these four.
        blocks.set_index_type(package.BlockBasedIndexType.two_level_index_search())
        blocks.set_partition_filters(True)
        blocks.set_metadata_block_size(_METADATA_BLOCK_BYTES)
        blocks.set_pin_top_level_index_and_filter(True)
        blocks.set_cache_index_and_filter_blocks(True)
        options = package.Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_block_based_table_factory(blocks)
        options.set_write_buffer_size(shares.write_buffer_bytes)
        options.set_max_write_buffer_number(shares.write_buffers)
        options.set_compression_type(package.DBCompressionType.none())
        options.set_level_compaction_dynamic_level_bytes(True)
        # Else state that is small beside RocksDB's 256 MB is one level, which every few flushes rewrite whole.
        options.set_max_bytes_for_level_base(_LEVEL_BUFFERS * shares.write_buffer_bytes)
        options.set_max_background_jobs(2)
        # Compaction reads every input file through a buffer of its own, which no share counts.
        options.set_compaction_readahead_size(min(_READAHEAD_BYTES, shares.write_buffer_bytes // 8))
        options.set_max_open_files(512)
        options.set_keep_log_file_num(1)
        return options

    # -- entries ------------------------------------------------------------------------------------------------------

    def get(self, key: bytes) -> bytes | None:
        """Read an entry."""
        return self.get_many([key])[0]

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        """Read entries in one call, which lets other threads run meanwhile."""
        if not keys:
            return []
        try:
            return self._database.get(keys)  # type: ignore[no-any-return]
        except Exception as error:
            raise self._failed("be read", error) from error

    def write(self, writes: Iterable[Write]) -> None:
        """Write and remove entries, in the order of their keys: that is faster."""
        ordered = sorted(writes, key=_entry_key)  # of two writes to one key the later one counts
        while ordered:
            try:
                self._database.write(self._batch(ordered), self._writing)
                return
            except Exception as error:
                if not str(error).endswith(_STALLED):
                    raise self._failed("be written", error) from error
                Event().wait(_STALL_PAUSE_S)  # compaction catches up; the failed batch has been consumed

    def _batch(self, writes: Sequence[Write]) -> Any:
        batch = self._package.WriteBatch(raw_mode=True)
        for key, value in writes:
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        return batch

    # -- ranges -------------------------------------------------------------------------------------------------------

    def view(self) -> Any:
        """The database as it is now, for one `scan` after the other; later writes do not change it.

        This is an iterator: the package's snapshots iterate over what is there now.
        """
        try:
            return self._database.iter()
        except Exception as error:
            raise self._failed("be read", error) from error

    def scan(self, prefix: bytes, view: Any = None, begin: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """The entries whose key begins so, in order, as of the first one, or of the view.

        `begin`: where after the prefix to begin. Entries removed before it cost nothing then.
        """
        entries = self.view() if view is None else view
        try:
            entries.seek(prefix + begin)
            while entries.valid():
                key = entries.key()
                if not key.startswith(prefix):
                    break
                yield key, entries.value()
                entries.next()
            entries.status()  # an iterator that meets a damaged file just ends
        except GeneratorExit:
            raise
        except StateBackendError:
            raise
        except Exception as error:
            raise self._failed("be read", error) from error

    def ingest(self, entries: Entries) -> None:
        """Add new entries, whose keys ascend and are in no other entry.

        They are added as a file, if they are many: a file waits for the disk several times, whatever its size.
        """
        self.ingest_files([entries])

    def ingest_files(self, runs: Iterable[Entries]) -> None:
        """The same for several runs of entries, each in a file of its own; one call takes several files."""
        files: list[str] = []
        try:
            for entries in runs:
                remaining = iter(entries)
                first = _first_bytes(remaining, _FILE_BYTES)
                after = next(remaining, None)
                if after is None:
                    self.write(first)
                else:
                    files.append(str(self._files / uuid4().hex))
                    self._write_file(files[-1], chain(first, (after,), remaining))
                if len(files) == _FILES_AT_ONCE:
                    self._take_files(files)
            self._take_files(files)
        finally:
            for file in files:
                Path(file).unlink(missing_ok=True)

    def _write_file(self, file: str, entries: Entries) -> None:
        writer = self._package.SstFileWriter(self._options)
        try:
            writer.open(file)
            deque(starmap(writer.__setitem__, entries), maxlen=0)  # in C: millions of entries go through here
            writer.finish()
        except RekindleError:
            raise
        except Exception as error:
            raise self._failed("be written", error) from error

    def _take_files(self, files: list[str]) -> None:
        self._cache_pages(files)
        try:
            if files:
                self._database.ingest_external_file(files, self._moving())
        except Exception as error:
            raise self._failed("be written", error) from error
        for file in files:
            Path(file).unlink(missing_ok=True)
        files.clear()

    def _cache_pages(self, files: list[str]) -> None:
        """Undo that RocksDB drops the pages of a file that it wrote for ingestion, unless memory is scarce.

        A read from the disk takes three times the processor time of one from the page cache, and a hundred times the
        clock's.
        """
        self._ingested_bytes += sum(os.path.getsize(file) for file in files)
        if self._ingested_bytes * _CACHED_SHARE < _available_bytes():
            for file in files:
                _read_ahead(file)

    def _moving(self) -> Any:
        options = self._package.IngestExternalFileOptions()
        options.set_move_files(True)
        return options

    # -- life ---------------------------------------------------------------------------------------------------------

    @property
    def folder(self) -> Path:
        """The folder of the database; other scratch files may lie in it."""
        return self._folder

    def live_bytes(self) -> int:
        """About the bytes of its entries, on the disk and in its write buffers."""
        try:
            sizes = [self._database.property_int_value(name) or 0 for name in _LIVE_BYTES]
        except Exception as error:
            raise self._failed("be read", error) from error
        return sum(sizes)

    def close(self) -> None:
        """Close the database and remove its folder."""
        with suppress(Exception):  # the files are removed in any case
            self._database.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _failed(self, what: str, error: Exception) -> StateBackendError:
        return StateBackendError(
            f"The RocksDB of this slot in {self._folder} cannot {what}: {str(error).rstrip('.')}. Look at the space "
            "and the health of that disk, or set state.backend.rocksdb.localdir to another one."
        )
