"""The manifest of a checkpoint: encoding, versions, and the refusal of damaged ones."""

from __future__ import annotations

import pickle
import struct
import zlib
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given, settings

from rekindle.checkpoint.manifest import (
    FORMAT_VERSION,
    HEADER_BYTES,
    MAGIC,
    Blob,
    FileRef,
    KeyedPart,
    Manifest,
    ManifestKind,
    OperatorState,
    PartKind,
    SubtaskState,
    decode,
    encode,
)
from rekindle.errors import CorruptCheckpointError

# -- strategies --------------------------------------------------------------------------------------------------------

sizes = st.integers(0, 2**40)
refs = st.builds(FileRef, st.text(min_size=1, max_size=20), sizes, sizes, st.integers(0, 2**32 - 1))
blobs: st.SearchStrategy[Blob] = st.binary(max_size=30) | refs
parts = st.lists(
    st.builds(KeyedPart, st.integers(0, 2**15), st.sampled_from(PartKind), st.integers(1, 2**40), blobs), max_size=4
)
subtasks = st.builds(
    SubtaskState,
    subtask=st.integers(0, 1000),
    finished=st.booleans(),
    keyed=parts,
    timers=parts,
    raw_keyed=parts,
    operator_state=st.none() | blobs,
    union=st.booleans(),
    raw_operator=st.lists(blobs, max_size=2),
    source=st.none() | blobs,
    task=st.none() | blobs,
    committables=st.lists(blobs, max_size=2),
    new_bytes=sizes,
    full_bytes=sizes,
)
operators = st.builds(
    OperatorState, st.text(), st.text(), st.integers(1, 100), st.integers(1, 2**15), st.lists(subtasks, max_size=3)
)
manifests = st.builds(
    Manifest,
    kind=st.sampled_from(ManifestKind),
    checkpoint_id=st.integers(1, 2**60),
    job_id=st.text(),
    job_name=st.text(),
    timeline=st.text(),
    attempt=st.integers(0, 2**40),
    timestamp_ms=st.integers(0, 2**50),
    duration_ms=st.integers(0, 2**40),
    operators=st.lists(operators, max_size=3),
)

SAMPLE = Manifest(
    ManifestKind.CHECKPOINT,
    7,
    "0a1b2c3d" * 4,
    "orders",
    "00000001-0a1b2c3d",
    1,
    1_700_000_000_000,
    operators=[
        OperatorState(
            "op",
            "count",
            1,
            128,
            [SubtaskState(0, keyed=[KeyedPart(3, PartKind.FULL, 7, b"x"), KeyedPart(4, PartKind.DELTA, 7, b"")])],
        )
    ],
)


# -- round trips -------------------------------------------------------------------------------------------------------


@given(manifests)
def test_what_was_encoded_is_decoded(manifest: Manifest) -> None:
    assert decode(encode(manifest)) == manifest


@given(manifests)
def test_files_are_as_long_as_what_is_needed_of_them(manifest: Manifest) -> None:
    files = manifest.files()
    for ref in manifest.references():
        assert files[ref.path] >= ref.offset + ref.length
    assert set(files) == {ref.path for ref in manifest.references()}


def test_every_blob_is_counted() -> None:
    by_name = {
        field.name: FileRef(field.name, 0, 1, 0)
        for field in msgspec.structs.fields(SubtaskState)
        if "Blob" in str(field.type) or "FileRef" in str(field.type) or "KeyedPart" in str(field.type)
    }
    keyed = {"keyed", "timers", "raw_keyed"}
    lists = {"raw_operator", "committables"}
    fields: dict[str, Any] = {
        name: [KeyedPart(0, PartKind.FULL, 1, ref)] if name in keyed else [ref] if name in lists else ref
        for name, ref in by_name.items()
    }
    state = SubtaskState(0, **fields)
    assert len(by_name) == 9
    assert set(state.blobs()) == set(by_name.values())


def test_fields_that_a_later_version_adds_are_skipped() -> None:
    body = msgspec.msgpack.decode(encode(SAMPLE)[HEADER_BYTES:])
    body["a later field"] = [1, 2]
    body["operators"][0]["subtasks"][0]["another"] = "x"
    assert decode(framed(msgspec.msgpack.encode(body))) == SAMPLE


def test_fields_with_defaults_may_be_missing() -> None:
    body = msgspec.msgpack.decode(encode(SAMPLE)[HEADER_BYTES:])
    for field in ("timers", "raw_keyed", "committables", "union"):
        del body["operators"][0]["subtasks"][0][field]
    assert decode(framed(msgspec.msgpack.encode(body))) == SAMPLE


def test_the_format_is_this_one() -> None:
    """Checkpoints of this version must load in every later one: the frame and the names of the fields are fixed."""
    data = encode(SAMPLE)
    assert data[:8] == b"REKINDLE"
    assert struct.unpack("<H", data[8:10]) == (1,)
    assert msgspec.msgpack.decode(data[HEADER_BYTES:]) == {
        "kind": "checkpoint",
        "checkpoint_id": 7,
        "job_id": "0a1b2c3d" * 4,
        "job_name": "orders",
        "timeline": "00000001-0a1b2c3d",
        "attempt": 1,
        "timestamp_ms": 1_700_000_000_000,
        "duration_ms": 0,
        "operators": [
            {
                "uid": "op",
                "name": "count",
                "parallelism": 1,
                "max_parallelism": 128,
                "subtasks": [
                    {
                        "subtask": 0,
                        "finished": False,
                        "keyed": [[3, "full", 7, b"x"], [4, "delta", 7, b""]],
                        "timers": [],
                        "raw_keyed": [],
                        "operator_state": None,
                        "union": False,
                        "raw_operator": [],
                        "source": None,
                        "task": None,
                        "committables": [],
                        "new_bytes": 0,
                        "full_bytes": 0,
                        "file_bytes": {},
                        "in_flight": None,
                        "has_in_flight": False,
                    }
                ],
                "layout": "",
            }
        ],
        "format_version": 1,
        "claimed_ms": 0,
    }


# -- refusals ----------------------------------------------------------------------------------------------------------


def framed(body: bytes, version: int = FORMAT_VERSION, magic: bytes = MAGIC) -> bytes:
    leading = struct.pack("<8sHQ", magic, version, len(body))
    return leading + struct.pack("<I", zlib.crc32(body, zlib.crc32(leading))) + body


def test_truncated_at_every_byte() -> None:
    data = encode(SAMPLE)
    for length in range(len(data)):
        with pytest.raises(CorruptCheckpointError, match=r"^chk-7 is truncated: "):
            decode(data[:length], "chk-7")


def test_every_flipped_byte_is_found() -> None:
    data = encode(SAMPLE)
    for place in range(len(data)):
        for flip in (0x01, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[place] ^= flip
            with pytest.raises(CorruptCheckpointError, match=r"^chk-7 "):
                decode(bytes(damaged), "chk-7")


@settings(max_examples=50)
@given(manifests, st.data())
def test_damage_anywhere_is_found(manifest: Manifest, data: st.DataObject) -> None:
    encoded = bytearray(encode(manifest))
    place = data.draw(st.integers(0, len(encoded) - 1))
    encoded[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(CorruptCheckpointError):
        decode(bytes(encoded))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "is truncated: 0 bytes"),
        (b"REKI", "is truncated: 4 bytes"),
        (b"\x80\x04K\x01.", "was not written by Rekindle"),
        (b"{}", "was not written by Rekindle"),
        (framed(b"\x80", magic=b"REKINDLF"), "was not written by Rekindle"),
        (framed(b"\xc1", version=2), "has format 2, which another version of Rekindle wrote; this one reads format 1"),
        (framed(b"\xc1", version=0), "has format 0, which another version"),
        (encode(SAMPLE) + b"\x00", "is damaged: its checksum"),
        (framed(b"\xc1"), "is damaged"),
        (framed(msgspec.msgpack.encode({"kind": "checkpoint"})), "is damaged: .*checkpoint_id"),
        (framed(msgspec.msgpack.encode([1, 2])), "is damaged"),
    ],
)
def test_what_is_no_manifest_is_refused_by_name(data: bytes, sentence: str) -> None:
    with pytest.raises(CorruptCheckpointError, match=f"^orders/chk-7/_metadata {sentence}"):
        decode(data, "orders/chk-7/_metadata")


def test_reading_runs_no_pickle() -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, ...]:
            return (pytest.fail, ("code of the data ran",))

    for data in (pickle.dumps(Evil()), framed(pickle.dumps(Evil()))):
        with pytest.raises(CorruptCheckpointError):
            decode(data)
