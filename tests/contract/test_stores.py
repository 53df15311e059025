"""I15: every store keeps the contract of the four verbs, and reports each fault in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import obstore.store
import pytest
from pyarrow import fs

from rekindle.checkpoint.store.arrow import ArrowStore
from rekindle.checkpoint.store.copied_store import CopiedStore
from rekindle.checkpoint.store.local import LocalStore
from rekindle.checkpoint.store.memory import MemoryStore
from rekindle.checkpoint.store.objects import ObjectStore
from rekindle.checkpoint.store.open_store import check_usable, open_store
from rekindle.checkpoint.store.port import Store
from rekindle.errors import StoreError
from rekindle.testing.store_contract import StoreContract


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


class TestLocalStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return LocalStore(tmp_path / "not yet there" / "checkpoints")


class TestCopiedStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return CopiedStore(MemoryStore(), tmp_path)


class TestS3Store(StoreContract):
    @pytest.fixture
    def store(self, s3: Any) -> Store:
        return open_store(f"{s3.new_bucket()}/some/prefix", s3.options())


class TestObjectStoreInMemory(StoreContract):
    """obstore without a server: the same calls as for Google Cloud Storage."""

    @pytest.fixture
    def store(self) -> Store:
        return ObjectStore(obstore.store.MemoryStore(), "memory")


class TestArrowStore(StoreContract):
    """Arrow's file system for HDFS, with a local one in its place."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return ArrowStore(fs.LocalFileSystem(), str(tmp_path / "checkpoints"), "hdfs://test/checkpoints")


def test_two_stores_in_one_bucket_do_not_see_each_other(s3: Any) -> None:
    bucket = s3.new_bucket()
    one, two = open_store(f"{bucket}/one", s3.options()), open_store(f"{bucket}/two/", s3.options())
    one.put("a", b"1")
    assert two.list() == []
    assert [entry.path for entry in open_store(bucket, s3.options()).list()] == ["one/a"]
    assert (one.url, two.url) == (f"{bucket}/one", f"{bucket}/two")


def test_a_bucket_that_does_not_exist_is_named(s3: Any) -> None:
    store = open_store("s3://nobody-made-this/x", s3.options())
    for call in (lambda: store.put("a", b""), lambda: store.read("a"), lambda: store.list()):
        with pytest.raises(StoreError, match=r"bucket of s3://nobody-made-this/x does not exist") as caught:
            call()
        assert not caught.value.retryable


def test_a_server_that_does_not_answer_may_answer_later() -> None:
    objects = obstore.store.S3Store(
        "bucket",
        endpoint="http://127.0.0.1:1",
        access_key_id="anyone",
        secret_access_key="anything",
        client_options={"allow_http": True},
        retry_config={"max_retries": 0},
    )
    with pytest.raises(StoreError, match=r"^Cannot write 'a' at s3://bucket: [^\n]+\.$") as caught:
        ObjectStore(objects, "s3://bucket").put("a", b"x")
    assert caught.value.retryable


def test_s3_keeps_two_drivers_apart(s3: Any, caplog: pytest.LogCaptureFixture) -> None:
    """I15: the store creates conditionally, so there is no warning."""
    store = open_store(s3.new_bucket(), s3.options())
    check_usable(store)
    assert caplog.records == []
    assert store.list() == []


def test_a_store_without_put_if_absent_warns(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """I15: the warning says that only one driver may run."""
    check_usable(ArrowStore(fs.LocalFileSystem(), str(tmp_path), "hdfs://test"))
    assert "run only one driver per job" in caplog.text
