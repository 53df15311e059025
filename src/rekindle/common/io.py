"""`InputFormat`: a source that `StreamExecutionEnvironment.create_input` reads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rekindle.common.typeinfo import TypeInformation

__all__ = ["InputFormat"]


class InputFormat(ABC):
    """Reads a bounded set of records. For a format of your own, extend `StreamFormat` and use a `FileSource`."""

    @abstractmethod
    def as_source(self) -> Any:
        """Return the `Source` that reads the records."""

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the records; None when it is not known."""
        return None
