"""Decide which key groups a checkpoint writes whole instead of as one more delta (I12). Pure: sizes in, decision out.

Deltas are cheap to write, but each adds a part to the manifest and to every restore, and keeps a file alive. So the
number of deltas is bounded, and the cost of rewriting is spread over many checkpoints:

- a key group is *heavy* if its deltas weigh as much as its full part. Heavy key groups are written whole, the heaviest
  first, within a budget per checkpoint: as many bytes as the deltas of the last checkpoint;
- a key group is *pressing* if its deltas are many, or if most of its keys are gone. Pressing key groups come before
  heavy ones, and their budget is at least the share with which all key groups get their turn in `cycle` checkpoints;
- a key group with `most_deltas` is written whole regardless of the budget;
- a file stays, with all its bytes, as long as one of them is needed. If files hold more dead bytes than live ones, or
  are too many, the key groups that keep the worst file alive are pressing too.

Timers of all key groups are written whole together, once their deltas weigh as much as their full parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rekindle.checkpoint.manifest import FileRef, KeyedPart, PartKind, SubtaskState, blob_size


@dataclass(frozen=True)
class RewriteRules:
    """The bounds. With the defaults a checkpoint rewrites 0.8 % of the state if all key groups change every time."""

    #: A key group with so many deltas is pressing.
    pressing_deltas: int = 32
    #: A key group never has more deltas.
    most_deltas: int = 176
    #: In so many checkpoints every key group gets its turn.
    cycle: int = 128
    #: If more files are alive, every key group with a delta is pressing.
    most_files: int = 256
    #: The cost of a part beside its bytes: an entry in every manifest, a read at a restore.
    part_bytes: int = 256
    #: The least budget: rewriting so little costs nothing.
    small_bytes: int = 64 << 10


RULES = RewriteRules()


@dataclass(frozen=True)
class PartChain:
    """The stored parts of one key group: a full part and the deltas on top of it."""

    full_bytes: int
    delta_bytes: int = 0
    deltas: int = 0
    #: Bytes per file.
    files: Mapping[str, int] = field(default_factory=dict)

    @staticmethod
    def of(parts: Iterable[KeyedPart]) -> PartChain:
        """The chain of a key group's parts, the full one first.

        >>> PartChain.of([KeyedPart(7, PartKind.FULL, 1, b"abc"), KeyedPart(7, PartKind.DELTA, 2, b"d")])
        PartChain(full_bytes=3, delta_bytes=1, deltas=1, files={})
        """
        full, *deltas = parts
        chain = PartChain(blob_size(full.blob), files=_file_of(full))
        for delta in deltas:
            chain = chain.with_delta(delta)
        return chain

    def with_delta(self, part: KeyedPart) -> PartChain:
        """The chain with one more delta on top."""
        files = self.files
        for path, size in _file_of(part).items():
            files = {**files, path: files.get(path, 0) + size}
        return PartChain(self.full_bytes, self.delta_bytes + blob_size(part.blob), self.deltas + 1, files)

    @property
    def size(self) -> int:
        """Bytes of all its parts."""
        return self.full_bytes + self.delta_bytes

    def weight(self, rules: RewriteRules) -> float:
        """The deltas in proportion to the full part; from 1 on the key group is heavy."""
        return (self.delta_bytes + self.deltas * rules.part_bytes) / max(self.full_bytes, 1)

    def ripeness(self, rules: RewriteRules) -> float:
        """How soon it is to be written whole, compared with others."""
        return max(self.weight(rules), self.deltas / rules.pressing_deltas)


def _file_of(part: KeyedPart) -> dict[str, int]:
    return {part.blob.path: part.blob.length} if isinstance(part.blob, FileRef) else {}


@dataclass(frozen=True)
class Inventory:
    """The stored chains of a subtask at a completed checkpoint, and the bytes spent on rewriting."""

    keyed: Mapping[int, PartChain] = field(default_factory=dict)
    timers: Mapping[int, PartChain] = field(default_factory=dict)
    file_bytes: Mapping[str, int] = field(default_factory=dict)
    #: Keys that a key group had when it was last written whole, where that is known.
    keys: Mapping[int, int] = field(default_factory=dict)
    last_delta_bytes: int = 0
    #: Bytes by which the last checkpoints exceeded their budgets.
    debt_bytes: int = 0

    @staticmethod
    def of(keyed: Iterable[KeyedPart], timers: Iterable[KeyedPart], file_bytes: Mapping[str, int]) -> Inventory:
        """The inventory of a restored subtask."""
        return Inventory(_chains(keyed), _chains(timers), file_bytes)

    def after(self, new: SubtaskState, keys: Mapping[int, int], rules: RewriteRules = RULES) -> Inventory:
        """The inventory after the next checkpoint, which wrote `new`; `keys`: their number per key group at the cut."""
        keyed, rewritten_bytes, delta_bytes = _on_top(self.keyed, new.keyed)
        timers, _, _ = _on_top(self.timers, new.timers)
        needed = _needed_bytes(keyed, timers).keys() | new.file_bytes.keys()
        files = {**self.file_bytes, **new.file_bytes}
        whole = {part.key_group for part in new.keyed if part.kind is PartKind.FULL}
        return Inventory(
            keyed,
            timers,
            {path: size for path, size in files.items() if path in needed},
            {**self.keys, **{group: keys[group] for group in whole if group in keys}},
            delta_bytes,
            max(0, self.debt_bytes + rewritten_bytes - self._budget_bytes(keys, rules)) if self.keyed else 0,
        )

    def expected_bytes(self, group: int, keys: int) -> int:
        """The approximate size of a key group's next full part, for so many keys."""
        chain, keys_then = self.keyed[group], self.keys.get(group, 0)
        return chain.full_bytes * keys // keys_then if keys_then else chain.size

    def pressing(self, keys: Mapping[int, int], holders: Iterable[int], rules: RewriteRules) -> set[int]:
        """The key groups that do not wait until enough has changed to pay for them; `keys`: their number now.

        `holders` keep a wasteful file alive.
        """
        many = {group for group, chain in self.keyed.items() if chain.deltas >= rules.pressing_deltas}
        emptied = {group for group in self.keyed if 2 * keys.get(group, 0) < self.keys.get(group, 0)}
        return many.union(emptied, holders)

    def heavy_budget_bytes(self, rules: RewriteRules) -> int:
        """Bytes of heavy key groups that the next checkpoint may rewrite, before debts are subtracted."""
        return max(rules.small_bytes, self.last_delta_bytes)

    def pressing_budget_bytes(self, rules: RewriteRules) -> int:
        """The same if key groups are pressing."""
        full = sum(chain.full_bytes for chain in self.keyed.values())
        return max(self.heavy_budget_bytes(rules), full // rules.cycle)

    def _budget_bytes(self, keys: Mapping[int, int], rules: RewriteRules) -> int:
        holders, _ = _holders_of_waste(self, rules)
        is_pressed = bool(self.pressing(keys, holders, rules))
        return self.pressing_budget_bytes(rules) if is_pressed else self.heavy_budget_bytes(rules)


def _chains(parts: Iterable[KeyedPart]) -> dict[int, PartChain]:
    groups: dict[int, list[KeyedPart]] = {}
    for part in parts:
        groups.setdefault(part.key_group, []).append(part)
    return {group: PartChain.of(sorted(own, key=lambda part: part.order)) for group, own in groups.items()}


def _on_top(base: Mapping[int, PartChain], new: Iterable[KeyedPart]) -> tuple[dict[int, PartChain], int, int]:
    """The new chains, the bytes of rewritten full parts, and the bytes of deltas."""
    chains = dict(base)
    rewritten = delta = 0
    for part in new:
        known = chains.get(part.key_group)
        if known is None or part.kind is PartKind.FULL:
            chains[part.key_group] = PartChain.of([part])
            rewritten += blob_size(part.blob) if known is not None else 0
        else:
            chains[part.key_group] = known.with_delta(part)
            delta += blob_size(part.blob)
    return chains, rewritten, delta


def _needed_bytes(*kinds: Mapping[int, PartChain]) -> Counter[str]:
    needed: Counter[str] = Counter()
    for chains in kinds:
        for chain in chains.values():
            needed.update(chain.files)
    return needed


@dataclass(frozen=True)
class Rewrites:
    """The key groups and timers that the next checkpoint writes whole; the rest is a delta on top of its base."""

    key_groups: list[int]
    timers: bool
    #: Key groups whose timers are stored: timers that are written whole replace them.
    timer_groups: frozenset[int] = frozenset()


def due(stored: Inventory, keys: Mapping[int, int], rules: RewriteRules = RULES) -> Rewrites:
    """Choose what the next checkpoint writes whole on top of `stored`; `keys`: their number per key group now.

    >>> parts = [KeyedPart(7, PartKind.FULL, 1, b"abc"), KeyedPart(7, PartKind.DELTA, 2, b"defg")]
    >>> due(Inventory.of(parts, [], {}), {7: 1}).key_groups, due(Inventory.of(parts[:1], [], {}), {7: 1}).key_groups
    ([7], [])
    """
    holders, timers_hold = _holders_of_waste(stored, rules)
    pressing = stored.pressing(keys, holders, rules)
    heavy = {group for group, chain in stored.keyed.items() if chain.weight(rules) >= 1}
    left_for_pressing = stored.pressing_budget_bytes(rules) - stored.debt_bytes
    left_for_heavy = stored.heavy_budget_bytes(rules) - stored.debt_bytes
    chosen, spent = [], 0
    for group in sorted(
        pressing | heavy, key=lambda each: (each not in pressing, -stored.keyed[each].ripeness(rules), each)
    ):
        left = left_for_pressing if group in pressing else left_for_heavy
        if spent < left or stored.keyed[group].deltas >= rules.most_deltas:
            chosen.append(group)
            spent += stored.expected_bytes(group, keys.get(group, 0))
    timers = timers_hold or _timers_due(stored.timers, rules)
    return Rewrites(sorted(chosen), timers, frozenset(stored.timers))


def _timers_due(timers: Mapping[int, PartChain], rules: RewriteRules) -> bool:
    together = PartChain(
        sum(chain.full_bytes for chain in timers.values()),
        sum(chain.delta_bytes for chain in timers.values()),
        sum(chain.deltas for chain in timers.values()),
    )
    weight = together.delta_bytes + together.deltas * rules.part_bytes
    longest = max((chain.deltas for chain in timers.values()), default=0)
    return together.deltas > 0 and (weight >= together.full_bytes or longest >= rules.most_deltas)


def _holders_of_waste(stored: Inventory, rules: RewriteRules) -> tuple[list[int], bool]:
    """The key groups that keep a wasteful file alive, and whether timers do."""
    needed = _needed_bytes(stored.keyed, stored.timers)
    if len(stored.file_bytes) > rules.most_files:
        return [group for group, chain in stored.keyed.items() if chain.deltas], any(
            chain.deltas for chain in stored.timers.values()
        )
    if sum(stored.file_bytes.values()) <= 2 * sum(needed.values()) + rules.small_bytes:
        return [], False
    timer_bytes = sum(chain.full_bytes for chain in stored.timers.values())

    def holders(path: str) -> tuple[list[int], bool]:
        groups = [group for group, chain in stored.keyed.items() if path in chain.files]
        return groups, any(path in chain.files for chain in stored.timers.values())

    def gain(path: str) -> float:
        """Dead bytes that are freed per byte that is rewritten."""
        groups, timers = holders(path)
        cost = sum(stored.keyed[group].full_bytes for group in groups) + (timer_bytes if timers else 0)
        return (stored.file_bytes[path] - needed[path]) / max(cost, 1)

    return holders(max(stored.file_bytes, key=gain))
