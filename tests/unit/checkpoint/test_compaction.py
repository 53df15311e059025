"""I12: parts and files stay bounded, and the cost of rewriting is spread over checkpoints."""

from __future__ import annotations

from rekindle.checkpoint.compaction import RULES, Inventory, PartChain, RewriteRules, due
from rekindle.checkpoint.manifest import FileRef, KeyedPart, PartKind, SubtaskState
from rekindle.checkpoint.parts import carried_over, on_top_of

FULL, DELTA = PartKind.FULL, PartKind.DELTA
MB = 1 << 20


class Subtask:
    """Writes checkpoints of given sizes as a slot does, and keeps the manifest's view of them beside the slot's."""

    def __init__(self, group_bytes: dict[int, int], rules: RewriteRules = RULES) -> None:
        self.rules = rules
        self.group_bytes = group_bytes
        self.inventory = Inventory()
        self.stored: SubtaskState | None = None
        self.id = 0
        self.keys = dict.fromkeys(group_bytes, 1000)

    def checkpoint(self, delta_bytes: dict[int, int], completes: bool = True) -> SubtaskState:
        """Make one checkpoint; returns what it wrote."""
        self.id += 1
        parts: list[KeyedPart] = []
        sizes: list[tuple[int, PartKind, int]] = []
        if self.stored is None:
            sizes = [(group, FULL, size) for group, size in self.group_bytes.items()]
        else:
            whole = due(self.inventory, self.keys, self.rules).key_groups
            sizes = [(group, FULL, self.group_bytes[group]) for group in whole]
            sizes += [(group, DELTA, size) for group, size in delta_bytes.items() if group not in whole]
        offset = 0
        for group, kind, size in sizes:
            parts.append(KeyedPart(group, kind, self.id, FileRef(f"shared/{self.id}", offset, size, 0)))
            offset += size
        files = {f"shared/{self.id}": offset} if parts else {}
        written = SubtaskState(0, keyed=parts, new_bytes=offset, file_bytes=files)
        if completes:
            self.inventory = self.inventory.after(written, self.keys, self.rules)
            self.stored = on_top_of(self.stored, written)
        return written

    @property
    def chains(self) -> list[int]:
        return [chain.deltas for chain in self.inventory.keyed.values()]


def test_the_slot_and_the_manifest_count_the_same() -> None:
    subtask = Subtask(dict.fromkeys(range(8), 10 * MB))
    for number in range(200):
        subtask.checkpoint({number % 8: MB, (number * 5) % 8: 2 * MB}, completes=number % 7 != 3)
        assert subtask.stored is not None
        again = Inventory.of(subtask.stored.keyed, [], subtask.stored.file_bytes)
        assert (again.keyed, again.file_bytes) == (subtask.inventory.keyed, subtask.inventory.file_bytes)
        assert list(carried_over(subtask.stored.keyed, [])) == subtask.stored.keyed


def test_one_percent_of_the_keys_costs_less_than_three_percent_of_the_state() -> None:
    """I12: the target of large state; each checkpoint, not only on average."""
    groups = dict.fromkeys(range(64), 8 * MB)
    full = sum(groups.values())
    subtask = Subtask(groups)
    assert subtask.checkpoint({}).new_bytes == full
    increments = [subtask.checkpoint(dict.fromkeys(groups, 8 * MB // 100)).new_bytes / full for _ in range(300)]
    assert max(increments) < 0.03
    assert sum(increments) / len(increments) < 0.025
    assert max(subtask.chains) <= RULES.most_deltas
    stored = subtask.stored
    assert stored is not None
    assert sum(stored.file_bytes.values()) < 3 * full


def test_half_a_percent_of_the_keys_costs_no_more_than_two_and_a_half_times_what_changed() -> None:
    """The share of a cycle is what is written beside the changes, however small these are."""
    groups = dict.fromkeys(range(64), 8 * MB)
    few = dict.fromkeys(groups, 8 * MB // 200)
    subtask = Subtask(groups)
    subtask.checkpoint({})
    increments = [subtask.checkpoint(few).new_bytes / sum(few.values()) for _ in range(RULES.most_deltas + RULES.cycle)]
    assert sum(increments) / len(increments) <= 2.5
    assert max(subtask.chains) <= RULES.most_deltas


def test_nothing_changes_nothing_is_written() -> None:
    subtask = Subtask(dict.fromkeys(range(64), 8 * MB))
    subtask.checkpoint({})
    assert {subtask.checkpoint({}).new_bytes for _ in range(300)} == {0}


def test_one_hot_key_group_costs_only_its_own_rewrites() -> None:
    subtask = Subtask(dict.fromkeys(range(64), 8 * MB))
    subtask.checkpoint({})
    written = sum(subtask.checkpoint({5: 1000}).new_bytes for _ in range(320))
    assert written <= 11 * 8 * MB
    assert max(subtask.chains) <= RULES.pressing_deltas


def test_key_groups_of_which_everything_changes_are_written_whole_every_other_time() -> None:
    groups = dict.fromkeys(range(64), 100_000)
    subtask = Subtask(groups)
    subtask.checkpoint({})
    for _ in range(50):
        subtask.checkpoint(groups)
        assert max(subtask.chains) <= 1


def test_small_state_has_few_parts() -> None:
    groups = dict.fromkeys(range(64), 300)
    subtask = Subtask(groups)
    subtask.checkpoint({})
    for _ in range(50):
        subtask.checkpoint(dict.fromkeys(groups, 10))
        assert max(subtask.chains) <= 2


def test_the_ripest_come_first_and_the_budget_holds() -> None:
    parts = []
    for group, deltas in enumerate([1, 90, 50, 70, 60]):
        parts.append(KeyedPart(group, FULL, 1, b"x" * 1000))
        parts += [KeyedPart(group, DELTA, 2 + n, b"x" * 20) for n in range(deltas)]
    stored = Inventory.of(parts, [], {})
    keys = dict.fromkeys(range(5), 1)
    assert due(stored, keys, RewriteRules(part_bytes=0, small_bytes=1500)).key_groups == [1]
    assert due(stored, keys, RewriteRules(part_bytes=0, small_bytes=5000)).key_groups == [1, 3]
    assert due(stored, keys, RewriteRules(part_bytes=0, small_bytes=10_000)).key_groups == [1, 2, 3, 4]


def test_small_changes_after_state_was_filled_in_do_not_pay_for_it_at_once() -> None:
    """Heavy key groups wait: a checkpoint writes about twice what has changed, not a share of all that is stored."""
    subtask = Subtask(dict.fromkeys(range(64), MB))
    subtask.checkpoint({})
    for number in range(2, 9):
        subtask.group_bytes, subtask.keys = dict.fromkeys(range(64), number * MB), dict.fromkeys(range(64), number)
        subtask.checkpoint(dict.fromkeys(range(64), MB))
    subtask.checkpoint({})  # as much as the last of these
    few = dict.fromkeys(range(64), 32_000)  # less than the share of one checkpoint in a cycle, which is 6.4 MB
    increments = [subtask.checkpoint(few).new_bytes for _ in range(20)]
    assert 1.5 < sum(increments) / (20 * sum(few.values())) < 2.5


def test_what_a_rewrite_will_cost_is_guessed_by_the_number_of_keys() -> None:
    """Key groups that have grown tenfold since they were last written: the budget is for what will be written."""
    subtask = Subtask(
        dict.fromkeys(range(8), MB), RewriteRules(pressing_deltas=2, cycle=2, part_bytes=0, small_bytes=0)
    )
    subtask.checkpoint({})
    subtask.keys = dict.fromkeys(range(8), 10_000)
    subtask.group_bytes = dict.fromkeys(range(8), 10 * MB)
    for _ in range(2):
        subtask.checkpoint(dict.fromkeys(range(8), 10))
    # The budget is 4 MB: one of 10 MB exceeds it.
    assert [part.key_group for part in subtask.checkpoint({}).keyed] == [0]


def test_debts_are_paid_before_the_next_rewrite() -> None:
    rules = RewriteRules(pressing_deltas=2, cycle=10, part_bytes=0, small_bytes=0)
    subtask = Subtask({0: 1000, 1: 1000}, rules)
    subtask.checkpoint({})
    rewrites = []
    for _ in range(40):
        written = subtask.checkpoint({0: 1, 1: 1})
        rewrites.append(sum(part.kind is FULL for part in written.keyed))
    # Two key groups in a cycle of ten checkpoints, never both at once.
    assert max(rewrites) == 1
    assert 7 <= sum(rewrites) <= 9


def test_at_the_most_deltas_the_budget_does_not_count() -> None:
    rules = RewriteRules(pressing_deltas=3, most_deltas=5, cycle=1000, part_bytes=0, small_bytes=0)
    subtask = Subtask(dict.fromkeys(range(8), 1000), rules)
    subtask.checkpoint({})
    for _ in range(60):
        subtask.checkpoint(dict.fromkeys(range(8), 1))
        assert max(subtask.chains) <= 5


def test_key_groups_that_lost_most_keys_are_written_whole() -> None:
    subtask = Subtask(dict.fromkeys(range(4), 8 * MB))
    subtask.checkpoint({})
    subtask.keys[2] = 10
    subtask.group_bytes[2] = 100
    written = subtask.checkpoint({2: 1000})
    assert [(part.key_group, part.kind) for part in written.keyed] == [(2, FULL)]
    assert subtask.checkpoint({}).new_bytes == 0


def test_a_large_file_does_not_live_on_for_a_few_bytes() -> None:
    subtask = Subtask({0: 1000, **dict.fromkeys(range(1, 16), 10 * MB)})
    subtask.checkpoint({})
    for group in range(1, 16):
        subtask.group_bytes[group] = 1000
        subtask.keys[group] = 1
    for _ in range(RULES.cycle):
        subtask.checkpoint({})
    # Key group 0 never changed: only the size of the first file is a reason to rewrite it.
    assert subtask.stored is not None
    assert "shared/1" not in subtask.stored.file_bytes
    assert sum(subtask.stored.file_bytes.values()) <= 2 * 16_000 + RULES.small_bytes


def test_dead_bytes_are_bounded_wherever_changes_move() -> None:
    """Each key group changes for a while, and then not for long."""
    subtask = Subtask(dict.fromkeys(range(16), 10 * MB))
    subtask.checkpoint({})
    for number in range(1500):
        subtask.checkpoint({number // 20 % 16: 100})
        assert subtask.stored is not None
        live = sum(chain.size for chain in subtask.inventory.keyed.values())
        # Twice the live bytes, and those that come before the key groups are rewritten.
        assert sum(subtask.stored.file_bytes.values()) <= 2.5 * live + 2 * RULES.small_bytes
        assert len(subtask.stored.file_bytes) <= RULES.most_files + 16


def test_deltas_of_many_cold_key_groups_do_not_keep_all_their_files() -> None:
    subtask = Subtask(dict.fromkeys(range(64), 8 * MB))
    subtask.checkpoint({})
    for number in range(3000):
        subtask.checkpoint({number // 25 % 64: 100})
        assert subtask.stored is not None
        assert len(subtask.stored.file_bytes) <= RULES.most_files + 64


def test_timers_are_written_whole_when_their_deltas_weigh_as_much() -> None:
    parts = [KeyedPart(group, FULL, 1, b"x" * 10_000) for group in range(4)]
    keys = dict.fromkeys(range(4), 1)
    assert not due(Inventory.of([], parts, {}), keys).timers
    parts += [KeyedPart(group, DELTA, 2, b"x" * 5_000) for group in range(4)]
    assert not due(Inventory.of([], parts, {}), keys).timers
    parts += [KeyedPart(group, DELTA, 3, b"x" * 5_000) for group in range(4)]
    assert due(Inventory.of([], parts, {}), keys).timers


def test_timers_never_have_more_than_the_most_deltas() -> None:
    parts = [KeyedPart(0, FULL, 1, b"x" * MB), *(KeyedPart(0, DELTA, 2 + n, b"x") for n in range(RULES.most_deltas))]
    assert due(Inventory.of([], parts, {}), {0: 1}).timers
    assert not due(Inventory.of([], parts[:-1], {}), {0: 1}).timers


def test_a_chain_knows_its_files() -> None:
    chain = PartChain.of(
        [
            KeyedPart(0, FULL, 1, FileRef("a", 0, 10, 0)),
            KeyedPart(0, DELTA, 2, b"inline"),
            KeyedPart(0, DELTA, 3, FileRef("c", 5, 2, 0)),
        ]
    )
    assert (chain.size, chain.deltas, chain.files) == (18, 2, {"a": 10, "c": 2})
