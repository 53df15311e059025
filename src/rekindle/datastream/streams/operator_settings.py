"""What can still be said about an operator after it was added: name, uid, parallelism, chaining, slot sharing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NoReturn, Self

from rekindle.datastream.slot_sharing_group import SlotSharingGroup
from rekindle.datastream.transformations import Transformation
from rekindle.datastream.validation import check_name, check_parallelism
from rekindle.datastream.vocabulary import ChainingStrategy
from rekindle.errors import GraphError

if TYPE_CHECKING:
    from rekindle.datastream.stream_execution_environment import StreamExecutionEnvironment

_UID_HASH = re.compile(r"[0-9a-fA-F]{32}")


class OperatorSettings:
    """The settings that streams and sinks share. Each method gives back the stream, so that calls can follow it."""

    def __init__(self, environment: StreamExecutionEnvironment, operator: Transformation | None) -> None:
        self._env = environment
        self._operator = operator

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} stays in the driver and cannot be used inside a function")

    def _settable(self, method: str) -> Transformation:
        """The operator that a setting is about; a stream that is no operator's output has none."""
        if self._operator is None:
            raise GraphError(
                f"{method} is a setting of an operator, but this {type(self).__name__} is a partitioning, a union or a "
                "side output of one: call it on the operator before or after."
            )
        return self._operator

    def name(self, name: str) -> Self:
        """Name the operator, for logs, metrics and the plan.

        >>> from rekindle.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> env.from_collection([1]).map(lambda n: n + 1).name("increment").get_name()
        'increment'
        """
        self._settable("name()").name = check_name("name()", name)
        return self

    def uid(self, uid: str) -> Self:
        """Give the operator an id that outlives changes of the program: checkpoints find their state by it."""
        operator = self._settable("uid()")
        check_name(f"uid() of '{operator.name}'", uid)
        holder = self._env._operator_with_uid(uid)
        if holder is not None and holder is not operator:
            raise GraphError(f"uid '{uid}' of '{operator.name}' is taken by '{holder.name}': uids must be unique.")
        operator.uid = uid
        return self

    def set_uid_hash(self, uid_hash: str) -> Self:
        """Set the operator's internal id itself: 32 hexadecimal digits, as logs and checkpoints show it."""
        operator = self._settable("set_uid_hash()")
        if not isinstance(uid_hash, str) or not _UID_HASH.fullmatch(uid_hash):
            raise GraphError(f"set_uid_hash() of '{operator.name}' takes 32 hexadecimal digits, not {uid_hash!r}.")
        operator.uid_hash = uid_hash.lower()
        return self

    def set_parallelism(self, parallelism: int) -> Self:
        """Run the operator as so many subtasks."""
        operator = self._settable("set_parallelism()")
        check_parallelism(f"'{operator.name}'", parallelism)
        if operator.non_parallel and parallelism != 1:
            raise GraphError(
                f"'{operator.name}' cannot run in parallel, so its parallelism must be 1, not {parallelism}."
            )
        limit = operator.max_parallelism
        if limit is not None and parallelism > limit:
            raise GraphError(f"'{operator.name}': the parallelism {parallelism} is above its maximum of {limit}.")
        operator.parallelism = parallelism
        return self

    def set_description(self, description: str) -> Self:
        """A longer text for the plan."""
        self._settable("set_description()").description = description
        return self

    def disable_chaining(self) -> Self:
        """Let the operator be a task of its own."""
        self._settable("disable_chaining()").chaining = ChainingStrategy.NEVER
        return self

    def slot_sharing_group(self, slot_sharing_group: str | SlotSharingGroup) -> Self:
        """Put the operator into a group; operators of different groups do not chain."""
        operator = self._settable("slot_sharing_group()")
        if isinstance(slot_sharing_group, SlotSharingGroup):
            self._env.register_slot_sharing_group(slot_sharing_group)
            operator.slot_sharing_group = slot_sharing_group.get_name()
        else:
            operator.slot_sharing_group = check_name(f"slot_sharing_group() of '{operator.name}'", slot_sharing_group)
        return self
