"""Several sources of one vendor as one: each part fails, and comes back, alone."""

from __future__ import annotations

from runvitals.backoff import Backoff
from runvitals.collectors.plumbing.tool import StillFailing, ToolFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from runvitals.collectors.base import Collector, Tick

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 300.0


class CompositeSource:
    """Asks its parts in order; what a later one writes counts more.

    Args:
        name: of the whole.
        parts: sources. One that fails is left alone for 1, 2, 4 … 300 s; `absent` tells why meanwhile. One
            that waits for its program to begin again is asked at each tick, which costs next to nothing.
    """

    def __init__(self, name: str, parts: Sequence[Collector]) -> None:
        self.name = name
        self.parts = parts
        self._backoffs = [Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S) for _ in parts]
        self._failures: dict[str, str] = {}
        self.absent = self._absent()
        self.facts = self._facts()

    @property
    def pending(self) -> bool:
        """Whether a part's first answer is under way."""
        return any(getattr(part, "pending", False) for part in self.parts)

    def sample(self, tick: Tick) -> None:
        """Sample the parts.

        Raises:
            ToolFailed: none of them works.
        """
        for part, backoff in zip(self.parts, self._backoffs, strict=True):
            if not backoff.due(tick.mono_s):
                continue
            try:
                part.sample(tick)
            except StillFailing as error:
                self._failures[part.name] = str(error)
            except (ToolFailed, OSError, ValueError) as error:
                self._failures[part.name] = str(error)
                backoff.failed(tick.mono_s)
            else:
                self._failures.pop(part.name, None)
                backoff.worked()
        if (absent := self._absent()) != self.absent:
            self.absent = absent
        if (facts := self._facts()) != self.facts:
            self.facts = facts
        if len(self._failures) == len(self.parts):
            raise ToolFailed("; ".join(f"{name}: {why}" for name, why in self._failures.items()))

    def close(self) -> None:
        """Close the parts that can be closed."""
        for part in self.parts:
            close = getattr(part, "close", None)
            if close is not None:
                close()

    def _absent(self) -> dict[str, str]:
        """What the parts miss; and which of them fail."""
        absent: dict[str, str] = {}
        for part in self.parts:
            absent.update(getattr(part, "absent", {}))
        return {**absent, **self._failures}

    def _facts(self) -> dict[str, object]:
        """The facts of all parts; of one name, those of the first that has it."""
        facts: dict[str, object] = {}
        for part in self.parts:
            for name, value in (getattr(part, "facts", None) or {}).items():
                facts.setdefault(name, value)
        return facts
