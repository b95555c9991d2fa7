"""Several sources of one vendor as one collector. Each part fails and recovers independently."""

from __future__ import annotations

from runvitals.base.backoff import Backoff
from runvitals.monitoring.collectors.plumbing.missing_readings import add
from runvitals.monitoring.collectors.plumbing.tool import StillFailing, ToolFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from runvitals.monitoring.collectors.base import Collector, Tick

FIRST_PAUSE_S, MAX_PAUSE_S = 1.0, 300.0


class CompositeSource:
    """Samples its parts in order; a later part overwrites the values of an earlier one.

    Args:
        name: the name of the whole.
        parts: collectors. One that fails is retried after 1, 2, 4 … 300 s; until then `absent` says why. One
            that waits for its program to restart is sampled at each tick, which costs next to nothing.
    """

    def __init__(self, name: str, parts: Sequence[Collector]) -> None:
        self.name = name
        self.parts = parts
        self._backoffs = [Backoff(FIRST_PAUSE_S, MAX_PAUSE_S) for _ in parts]
        self._failures: dict[str, str] = {}
        self.absent = self._gather_absent()
        self.facts = self._facts()

    @property
    def pending(self) -> bool:
        """Whether the first reading of a part has not arrived yet."""
        return any(getattr(part, "pending", False) for part in self.parts)

    def sample(self, tick: Tick) -> None:
        """Sample the parts.

        Raises:
            ToolFailed: all parts fail.
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
                backoff.note_failure(tick.mono_s)
            else:
                self._failures.pop(part.name, None)
                backoff.note_success()
        if (absent := self._gather_absent()) != self.absent:
            self.absent = absent
        if (facts := self._facts()) != self.facts:
            self.facts = facts
        if len(self._failures) == len(self.parts):
            raise ToolFailed("; ".join(f"{name}: {why}" for name, why in self._failures.items()))

    def close(self) -> None:
        """Close the parts that have a `close`."""
        for part in self.parts:
            close = getattr(part, "close", None)
            if close is not None:
                close()

    def _gather_absent(self) -> dict[str, str]:
        """Name what the parts lack, and the parts that fail."""
        absent: dict[str, str] = {}
        for part in self.parts:
            for name, why in getattr(part, "absent", {}).items():
                add(absent, name, why)
        return {**absent, **self._failures}

    def _facts(self) -> dict[str, object]:
        """Return the facts of all parts; the first part wins where several report the same name."""
        facts: dict[str, object] = {}
        for part in self.parts:
            for name, value in (getattr(part, "facts", None) or {}).items():
                facts.setdefault(name, value)
        return facts
