"""The audit: notes that the job's subtasks write at each checkpoint, and the check that they add up.

    <directory>/run-0002                                     the program was started for the second time
    <directory>/notes/chk-7.run-2.attempt-0.ledger-1.json    the books of ledger subtask 1 at the barrier
    <directory>/completed/chk-7                              a subtask was notified that checkpoint 7 is complete
    <directory>/statements/17.json                           the last balance of account 17

A note holds the books of a subtask when the barrier of a checkpoint reached it. The checkpoint may still fail, and the
next driver may use its number again. So notes count only for completed checkpoints, and of several attempts at one
number only the newest counts: had an older attempt completed the checkpoint, the newer one would have begun after it.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from examples.transfers.model import ACCOUNTS, OPENING_CENTS, TOTAL_CENTS, Balance

_NOTE = re.compile(r"chk-(\d+)\.run-(\d+)\.attempt-(\d+)\.(desk|ledger)-(\d+)\.json")


@dataclass(frozen=True)
class Note:
    """The books of a subtask at the barrier of a checkpoint."""

    role: str  # "desk": made entries of transfers; "ledger": booked entries
    subtask: int
    parallelism: int
    transfers: int = 0
    entries: int = 0
    accounts: int = 0
    cents: int = 0


@dataclass(frozen=True)
class AuditLine:
    """The notes of a completed checkpoint, added up."""

    checkpoint_id: int
    run: int
    attempt: int
    transfers: int
    entries: int
    accounts: int
    total_cents: int
    missing: tuple[str, ...] = ()

    @property
    def adds_up(self) -> bool:
        """Whether every subtask has written, no cent is missing, and no entry was lost or booked twice."""
        return not self.missing and self.total_cents == TOTAL_CENTS and self.entries == 2 * self.transfers


@dataclass(frozen=True)
class AuditLog:
    """The directory to which the job's subtasks write small files, each under another name and then renamed."""

    directory: str

    def begin_run(self, resumed: bool) -> int:
        """Record the start of the program; a run that resumes nothing deletes the files of earlier runs."""
        root = Path(self.directory)
        for folder in ("notes", "completed", "statements"):
            (root / folder).mkdir(parents=True, exist_ok=True)
            for path in () if resumed else (root / folder).iterdir():
                path.unlink()
        run = 1 + max((int(path.name[4:]) for path in root.glob("run-*")), default=0)
        (root / f"run-{run:04d}").touch(exist_ok=False)
        return run

    def note(self, checkpoint_id: int, run: int, attempt: int, note: Note) -> None:
        """Write a subtask's note at a barrier."""
        name = f"chk-{checkpoint_id}.run-{run}.attempt-{attempt}.{note.role}-{note.subtask}.json"
        self._write(f"notes/{name}", json.dumps(asdict(note)))

    def completed(self, checkpoint_id: int) -> None:
        """Record that a checkpoint is complete; every subtask may call this."""
        Path(self.directory, "completed", f"chk-{checkpoint_id}").touch()

    def state(self, balance: Balance) -> None:
        """Write an account's last balance. Writing it again changes nothing, so this sink needs no transaction."""
        self._write(f"statements/{balance.account}.json", json.dumps(asdict(balance)))

    def _write(self, name: str, text: str) -> None:
        descriptor, temporary = tempfile.mkstemp(dir=self.directory, prefix=".new-")
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, os.path.join(self.directory, name))

    # -- the auditor's side -------------------------------------------------------------------------------------------

    def completed_checkpoints(self) -> set[int]:
        """The checkpoints that a subtask recorded as complete."""
        return {int(path.name[4:]) for path in Path(self.directory, "completed").iterdir()}

    def statements(self) -> dict[int, Balance]:
        """The last balances, by account."""
        found = [json.loads(path.read_text()) for path in Path(self.directory, "statements").iterdir()]
        return {fields["account"]: Balance(**fields) for fields in found}

    def audit(self, completed: Iterable[int] = ()) -> list[AuditLine]:
        """One line for each completed checkpoint: those that subtasks recorded, and those given here."""
        notes = self._notes()
        return [_line(each, notes.get(each, {})) for each in sorted(self.completed_checkpoints().union(completed))]

    def _notes(self) -> dict[int, dict[tuple[int, int], list[Note]]]:
        """The notes by checkpoint, then by (run, attempt)."""
        notes: dict[int, dict[tuple[int, int], list[Note]]] = {}
        for path in Path(self.directory, "notes").iterdir():
            match = _NOTE.fullmatch(path.name)
            assert match is not None, f"{path} is no note"
            checkpoint_id, run, attempt = (int(part) for part in match.groups()[:3])
            by_attempt = notes.setdefault(checkpoint_id, {})
            by_attempt.setdefault((run, attempt), []).append(Note(**json.loads(path.read_text())))
        return notes


def published_checkpoints(directory: str | Path, job_name: str) -> set[int]:
    """The completed checkpoints in a checkpoint directory: those with a `_metadata`."""
    found = Path(directory, job_name).glob("*/chk-*/_metadata")
    return {int(path.parent.name[4:]) for path in found}


def _line(checkpoint_id: int, by_attempt: dict[tuple[int, int], list[Note]]) -> AuditLine:
    run, attempt = max(by_attempt, default=(0, 0))
    notes = by_attempt.get((run, attempt), [])
    accounts = sum(note.accounts for note in notes)
    return AuditLine(
        checkpoint_id=checkpoint_id,
        run=run,
        attempt=attempt,
        transfers=sum(note.transfers for note in notes),
        entries=sum(note.entries for note in notes),
        accounts=accounts,
        # Accounts without entries are in no subtask's books, and hold their opening balance.
        total_cents=sum(note.cents for note in notes) + (ACCOUNTS - accounts) * OPENING_CENTS,
        missing=tuple(_missing(notes)),
    )


def _missing(notes: list[Note]) -> list[str]:
    """The subtasks that have not written a note."""
    missing = []
    for role in ("desk", "ledger"):
        there = {note.subtask for note in notes if note.role == role}
        parallelism = next((note.parallelism for note in notes if note.role == role), 1)
        missing += [f"{role} {subtask}" for subtask in range(parallelism) if subtask not in there]
    return missing
