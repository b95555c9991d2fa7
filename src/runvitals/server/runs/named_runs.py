"""Runs that a request names by their ids, for what is about several of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from runvitals.model.filter import Filter
from runvitals.model.run_state import State
from runvitals.server.library.run_library import OpenedRun


@dataclass(frozen=True, slots=True)
class NamedRun:
    """A run that a request named, and may be read.

    Args:
        end_ms: when it ended; while it is running, when it was last heard of.
    """

    id: str
    name: str
    state: State
    started_ms: int
    end_ms: int
    opened: OpenedRun


class NamedRuns(Protocol):
    """A library that finds several runs at once."""

    async def named(self, ids: Sequence[str], place: Filter) -> list[NamedRun]:
        """Those of these runs that match a filter, in the requested order.

        Raises:
            AmbiguousName: several teams have a run with one of these ids.
        """
