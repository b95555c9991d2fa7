"""A host of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from runvitals.model.ending import Ending
from runvitals.model.state import LOST, MONITOR, RUNNING, deciding_writer, deciding_writers

if TYPE_CHECKING:
    from runvitals.model.state import StateWriter

    class HostWriter(StateWriter, Protocol):
        """A writer, as far as a host's times follow from it."""

        @property
        def started_ms(self) -> int:
            """When it began to write, ms UTC."""

        @property
        def last_ms(self) -> int:
            """The time of its newest record, ms UTC."""

        @property
        def interval_s(self) -> float | None:
            """Seconds between its samples."""


Writer = TypeVar("Writer", bound="HostWriter")


@dataclass(frozen=True, slots=True)
class Host:
    """A host of a run. Times are ms UTC; `monitors` counts the monitor processes it had."""

    name: str
    ending: Ending
    started_ms: int
    last_ms: int
    interval_s: float | None
    monitors: int


def hosts_of(writers: Iterable[Writer], is_alive: Callable[[Writer], bool]) -> list[Host]:
    """The hosts of a run with their states (`runvitals.model.state`), in the order in which they joined.

    Args:
        writers: all writers of the run, oldest first.
        is_alive: whether a writer without an `end` record was heard from recently enough.
    """
    hosts = []
    for name, same_host in deciding_writers(writers).items():
        deciding = deciding_writer(same_host)
        hosts.append(
            Host(
                name=name,
                ending=deciding.ending or Ending(RUNNING if is_alive(deciding) else LOST),
                started_ms=same_host[0].started_ms,
                last_ms=max(writer.last_ms for writer in same_host),
                interval_s=same_host[-1].interval_s,
                monitors=sum(writer.role == MONITOR for writer in same_host),
            )
        )
    return hosts
