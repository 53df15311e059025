"""Claims: only the driver with the newest claim may publish and delete checkpoints of a job (I14).

Each attempt of each driver claims the next number under the job's name. The number is the attempt's id, so attempts are
numbered over all drivers. The claim is a fence: a driver whose claim is no longer the newest is refused.

A driver that takes over claims first and looks for the latest checkpoint afterwards. A driver that publishes checks the
claims again after publishing, before it notifies any slot. So either the new driver sees the checkpoint, or the old
driver sees the claim and commits nothing.
"""

from __future__ import annotations

import contextlib
from typing import Final

import msgspec

from rekindle.checkpoint.paths import claim_of, new_timeline, owner_attempt, owner_path, owners_folder
from rekindle.checkpoint.store.port import Store, put_once
from rekindle.errors import CheckpointError, MissingFileError, OwnershipLostError, StoreError

FORMAT_VERSION: Final = 1
# Older claims of the same driver that are kept: another driver that is just claiming must find its number taken.
_CLAIMS_KEPT: Final = 4
_ROUNDS: Final = 100


class Claim(msgspec.Struct, frozen=True):
    """A driver's claim: its attempt, and the timeline that the attempt writes to."""

    version: int
    attempt: int
    timeline: str
    job_name: str
    job_id: str
    #: Host and process of the driver: the error message of the older driver names them.
    driver: str
    #: The driver's clock, but above every earlier claim of the job that the driver knows: sinks order attempts by it.
    claimed_ms: int


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Claim).decode


def claim_first(store: Store, job_name: str, job_id: str, driver: str, now_ms: int) -> Claim:
    """Claim a driver's first attempt: take the job over from any other driver, and begin a timeline."""
    for _ in range(_ROUNDS):
        newest = newest_attempt(store, job_name)
        attempt = (newest or 0) + 1
        claimed_ms = now_ms if newest is None else max(now_ms, _claimed_ms(store, job_name, newest) + 1)
        claim = Claim(FORMAT_VERSION, attempt, new_timeline(attempt), job_name, job_id, driver, claimed_ms)
        # Other drivers may have claimed in between: the claim counts only if it is the newest now.
        if _put(store, claim) and newest_attempt(store, job_name) == attempt:
            return claim
    raise CheckpointError(f"The checkpoints of job '{job_name}' at {store.url} are claimed by others all the time.")


def claim_next(store: Store, claim: Claim, now_ms: int) -> Claim:
    """Claim the next attempt of the same driver, on the same timeline; OwnershipLostError if another driver took over.

    If the store failed right after it had written a claim, the driver does not know of that claim; it still counts.
    """
    last = _last_own(store, claim)
    check_owner(store, last)
    claimed_ms = max(now_ms, claim.claimed_ms + 1, last.claimed_ms + 1)
    again = msgspec.structs.replace(claim, attempt=last.attempt + 1, claimed_ms=claimed_ms)
    if not _put(store, again):
        check_owner(store, last)
        raise CheckpointError(f"Attempt {again.attempt} of job '{claim.job_name}' could not be claimed.")
    check_owner(store, again)
    with contextlib.suppress(StoreError):  # the next claim deletes them
        _delete_older(store, again)
    return again


def check_owner(store: Store, claim: Claim) -> None:
    """Raise OwnershipLostError if the claim is no longer the newest."""
    newest = newest_attempt(store, claim.job_name)
    if newest == claim.attempt:
        return
    if newest is None:
        raise OwnershipLostError(
            f"The checkpoints of job '{claim.job_name}' at {store.url} were removed while the job ran: it cannot "
            "write any more."
        )
    raise OwnershipLostError(_taken_over(store, claim, newest))


def refuse_taken_over(store: Store, claim: Claim) -> None:
    """Raise OwnershipLostError if another driver has a newer claim; a removed claim has no owner."""
    newest = newest_attempt(store, claim.job_name)
    if newest is not None and newest > claim.attempt:
        raise OwnershipLostError(_taken_over(store, claim, newest))


def newest_attempt(store: Store, job_name: str) -> int | None:
    """The number of the newest claim; None: there is no claim."""
    attempts = (owner_attempt(entry.path) for entry in store.list(owners_folder(job_name)))
    return max((attempt for attempt in attempts if attempt is not None), default=None)


def newest_claims(store: Store) -> list[Claim]:
    """The newest claim of each job in the store: of the driver that may be running."""
    newest: dict[str, tuple[int, str]] = {}
    for entry in store.list():
        found = claim_of(entry.path)
        if found is not None:
            job, attempt = found
            newest[job] = max(newest.get(job, (0, "")), (attempt, entry.path))
    claims = []
    for _, path in newest.values():
        with contextlib.suppress(MissingFileError, msgspec.DecodeError):  # removed meanwhile, or of another version
            claims.append(_decode(store.read(path)))
    return claims


def _put(store: Store, claim: Claim) -> bool:
    return put_once(store, owner_path(claim.job_name, claim.attempt), _encode(claim))


def _claimed_ms(store: Store, job_name: str, attempt: int) -> int:
    """The time of a claim; -1 if there is none, or if it is just being removed."""
    with contextlib.suppress(MissingFileError, msgspec.DecodeError):
        return _decode(store.read(owner_path(job_name, attempt))).claimed_ms
    return -1


def _last_own(store: Store, claim: Claim) -> Claim:
    """This driver's newest claim: the newest of all if it has this driver's timeline, else `claim`."""
    newest = newest_attempt(store, claim.job_name)
    if newest is None or newest <= claim.attempt:
        return claim
    with contextlib.suppress(MissingFileError, msgspec.DecodeError):
        found = _decode(store.read(owner_path(claim.job_name, newest)))
        if found.timeline == claim.timeline:
            return found
    return claim


def _delete_older(store: Store, claim: Claim) -> None:
    for entry in store.list(owners_folder(claim.job_name)):
        attempt = owner_attempt(entry.path)
        if attempt is not None and attempt < claim.attempt - _CLAIMS_KEPT:
            store.delete(entry.path)


def _taken_over(store: Store, claim: Claim, newest: int) -> str:
    who = "another driver"
    with contextlib.suppress(MissingFileError, msgspec.DecodeError):
        other = _decode(store.read(owner_path(claim.job_name, newest)))
        who = f"the driver {other.driver} (job id {other.job_id})"
    return (
        f"The checkpoints of job '{claim.job_name}' at {store.url} now belong to {who}, so this driver stops: only the "
        "newest one may write. Give one of the jobs another name or directory if both are to run."
    )
