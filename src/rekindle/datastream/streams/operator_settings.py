"""Settings of an operator that streams and sinks share: name, uid, parallelism, chaining, slot sharing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NoReturn, Self

from rekindle.common.java_names import RefusesJavaNames
from rekindle.datastream.slot_sharing_group import SlotSharingGroup
from rekindle.datastream.transformations import Transformation
from rekindle.datastream.validation import check_name, check_parallelism
from rekindle.datastream.vocabulary import ChainingStrategy
from rekindle.errors import GraphError

if TYPE_CHECKING:
    from rekindle.datastream.stream_execution_environment import StreamExecutionEnvironment

_UID_HASH = re.compile(r"[0-9a-fA-F]{32}")


class OperatorSettings(RefusesJavaNames):
    """The settings that streams and sinks share. Each method returns `self`, so that calls can be chained."""

    def __init__(self, environment: StreamExecutionEnvironment, operator: Transformation | None) -> None:
        self._env = environment
        self._operator = operator

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} stays in the driver and cannot be used inside a function")

    def _settable(self, method: str) -> Transformation:
        """Return the operator that a setting applies to. Fails for a stream that is not the output of an operator."""
        if self._operator is None:
            raise GraphError(
                f"{method} is a setting of an operator, but this {type(self).__name__} is a partitioning, a union or a "
                "side output of one: call it on the operator before or after."
            )
        return self._operator

    def name(self, name: str) -> Self:
        """Name the operator for logs, metrics and the plan.

        >>> from rekindle.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> env.from_collection([1]).map(lambda n: n + 1).name("increment").get_name()
        'increment'
        """
        self._settable("name()").name = check_name("name()", name)
        return self

    def uid(self, uid: str) -> Self:
        """Give the operator a stable id, by which a restore finds its state even after the program has changed."""
        operator = self._settable("uid()")
        check_name(f"uid() of '{operator.name}'", uid)
        holder = self._env._operator_with_uid(uid)
        if holder is not None and holder is not operator:
            raise GraphError(f"uid '{uid}' of '{operator.name}' is taken by '{holder.name}': uids must be unique.")
        operator.uid = uid
        return self

    def set_uid_hash(self, uid_hash: str) -> Self:
        """Set the operator's internal id directly: 32 hexadecimal digits, as logs and checkpoints show it."""
        operator = self._settable("set_uid_hash()")
        if not isinstance(uid_hash, str) or not _UID_HASH.fullmatch(uid_hash):
            raise GraphError(f"set_uid_hash() of '{operator.name}' takes 32 hexadecimal digits, not {uid_hash!r}.")
        operator.uid_hash = uid_hash.lower()
        return self

    def set_parallelism(self, parallelism: int) -> Self:
        """Set the number of subtasks of the operator."""
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
        """Set a longer description, which the plan shows."""
        self._settable("set_description()").description = description
        return self

    def disable_chaining(self) -> Self:
        """Run the operator in a task of its own."""
        self._settable("disable_chaining()").chaining = ChainingStrategy.NEVER
        return self

    def slot_sharing_group(self, slot_sharing_group: str | SlotSharingGroup) -> Self:
        """Put the operator into a slot sharing group. Operators of different groups do not chain."""
        operator = self._settable("slot_sharing_group()")
        if isinstance(slot_sharing_group, SlotSharingGroup):
            self._env.register_slot_sharing_group(slot_sharing_group)
            operator.slot_sharing_group = slot_sharing_group.get_name()
        else:
            operator.slot_sharing_group = check_name(f"slot_sharing_group() of '{operator.name}'", slot_sharing_group)
        return self
