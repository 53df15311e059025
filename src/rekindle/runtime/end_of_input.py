"""The end of a task's input as a state machine (I9): a table of states and events, without input or output.

`docs/architecture.md` has the table as a diagram. The task reports events and carries out the actions.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from typing import Final


class EndState(Enum):
    """How far the end of the input has come in a task."""

    OPEN = "records may come"
    #: Only sources are in this state: other tasks that had ended are FINISHED when they are restored.
    ENDED_BEFORE = "every operator had ended before the restored checkpoint; the end is to be sent again"
    #: Operators that had not ended were in other chains then, and records were in flight in front of them.
    PARTLY_ENDED_BEFORE = "some operators had ended before the restored checkpoint"
    ENDING = "the input has ended; an operator may still hold the end back"
    FINISHED = "every operator has passed on the end"


class EndEvent(Enum):
    """An event of a task's input, or of the end that its operators pass on."""

    RESTORED_ENDED = "restored: a source whose chain had ended"
    RESTORED_PARTLY_ENDED = "restored: the head had ended, some operators behind it had not"
    RESTORED_FINISHED = "restored: a chain behind an exchange that had ended"
    INPUT_ENDED = "the source has ended, or every channel has"
    HELD_END_SENT = "an epoch began with an operator that held the end back, and ended without one"
    NOTHING_HELD = "an epoch ended, and no operator held the end back"


class EndAction(Enum):
    """The task's answer to an event."""

    NONE = "nothing"
    FINISH_OPERATORS = "send the last watermark and the end through the chain"
    RESEND_END = "send the end again over the edges of the operators that had ended"


_OPEN, _ENDING, _FINISHED = EndState.OPEN, EndState.ENDING, EndState.FINISHED
_BEFORE, _PARTLY = EndState.ENDED_BEFORE, EndState.PARTLY_ENDED_BEFORE

#: (state, event) -> (next state, action). Pairs that are not here cannot happen.
TABLE: Final[dict[tuple[EndState, EndEvent], tuple[EndState, EndAction]]] = {
    (_OPEN, EndEvent.RESTORED_ENDED): (_BEFORE, EndAction.NONE),
    (_OPEN, EndEvent.RESTORED_PARTLY_ENDED): (_PARTLY, EndAction.NONE),
    (_OPEN, EndEvent.RESTORED_FINISHED): (_FINISHED, EndAction.NONE),
    (_OPEN, EndEvent.INPUT_ENDED): (_ENDING, EndAction.FINISH_OPERATORS),
    (_OPEN, EndEvent.HELD_END_SENT): (_FINISHED, EndAction.NONE),
    (_OPEN, EndEvent.NOTHING_HELD): (_OPEN, EndAction.NONE),
    (_BEFORE, EndEvent.INPUT_ENDED): (_FINISHED, EndAction.RESEND_END),
    (_BEFORE, EndEvent.HELD_END_SENT): (_FINISHED, EndAction.NONE),
    (_BEFORE, EndEvent.NOTHING_HELD): (_BEFORE, EndAction.NONE),
    # The end of the operators that had not ended is in flight.
    (_PARTLY, EndEvent.INPUT_ENDED): (_ENDING, EndAction.RESEND_END),
    (_PARTLY, EndEvent.HELD_END_SENT): (_FINISHED, EndAction.NONE),
    (_PARTLY, EndEvent.NOTHING_HELD): (_PARTLY, EndAction.NONE),
    (_ENDING, EndEvent.INPUT_ENDED): (_ENDING, EndAction.NONE),
    (_ENDING, EndEvent.HELD_END_SENT): (_FINISHED, EndAction.NONE),
    (_ENDING, EndEvent.NOTHING_HELD): (_FINISHED, EndAction.NONE),
    # After a restore at another parallelism the tasks behind this one may have forgotten that it had ended.
    (_FINISHED, EndEvent.INPUT_ENDED): (_FINISHED, EndAction.RESEND_END),
    (_FINISHED, EndEvent.HELD_END_SENT): (_FINISHED, EndAction.NONE),
    (_FINISHED, EndEvent.NOTHING_HELD): (_FINISHED, EndAction.NONE),
}

#: state -> the states that may follow, for the diagram.
TRANSITIONS: Final[dict[EndState, frozenset[EndState]]] = {
    state: frozenset(after for (before, _), (after, _) in TABLE.items() if before is state is not after)
    for state in EndState
}


class EndOfInput:
    """The end of one task's input.

    >>> end = EndOfInput()
    >>> end.on(EndEvent.INPUT_ENDED)
    <EndAction.FINISH_OPERATORS: 'send the last watermark and the end through the chain'>
    >>> end.epoch_ended(held_before=False, held_now=True)  # an operator waits for asynchronous calls
    >>> end.finished
    False
    >>> end.epoch_ended(held_before=True, held_now=False)
    >>> end.finished
    True
    """

    def __init__(self) -> None:
        self.state = EndState.OPEN
        #: Operators, by node id, that had not ended at the restored checkpoint.
        self._not_ended: frozenset[int] = frozenset()

    @property
    def finished(self) -> bool:
        """Whether every operator has passed on the end: the task takes part in epochs with nothing but its barrier."""
        return self.state is EndState.FINISHED

    @property
    def ended_before(self) -> bool:
        """Right after a restore: whether the head had ended before the restored checkpoint."""
        return self.state in (EndState.ENDED_BEFORE, EndState.PARTLY_ENDED_BEFORE, EndState.FINISHED)

    def on(self, event: EndEvent) -> EndAction:
        """Go to the next state, and return what the task has to do."""
        self.state, action = TABLE[self.state, event]
        return action

    def restored(self, is_source: bool, not_ended: Collection[int]) -> None:
        """Begin with a head that had ended before the restored checkpoint; `not_ended` operators had not."""
        self._not_ended = frozenset(not_ended)
        if not_ended:
            self.on(EndEvent.RESTORED_PARTLY_ENDED)
        else:
            self.on(EndEvent.RESTORED_ENDED if is_source else EndEvent.RESTORED_FINISHED)

    def epoch_ended(self, held_before: bool, held_now: bool) -> None:
        """An epoch ended; an operator held the end back before it, or still does."""
        if not held_now:
            self.on(EndEvent.HELD_END_SENT if held_before else EndEvent.NOTHING_HELD)

    def resends(self, node_id: int) -> bool:
        """Whether the end of an operator, which `RESEND_END` asks for, is to be sent again."""
        return self.finished or node_id not in self._not_ended
