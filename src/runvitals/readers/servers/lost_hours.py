"""What a server says that runs lost, by cause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from runvitals.readers.servers.connection import ApiConnection
from runvitals.readers.servers.responses import to_dataclass


@dataclass(frozen=True, slots=True)
class LostByCause:
    """What runs lost to findings of one id.

    Args:
        id: of the finding, such as `idle`.
        money: None: without a price, or you may not see prices.
        runs: how many lost it.
    """

    id: str
    title: str
    device_hours: float
    money: float | None
    runs: int


@dataclass(frozen=True, slots=True)
class LostHours:
    """The device-hours that runs lost in a period, by cause, the most first. No hour counts twice.

    Args:
        since_ms, until_ms: the period, ms UTC.
        currency: of the server's prices; None: these are not used.
        judged_runs, waiting_runs: how many runs of the period were judged, and how many not yet.
    """

    since_ms: int
    until_ms: int
    currency: str | None
    device_hours: float
    money: float | None
    causes: tuple[LostByCause, ...]
    judged_runs: int
    waiting_runs: int


@dataclass(frozen=True, slots=True)
class RunLoss:
    """What one run lost to one cause; `text` tells it in a sentence."""

    run: str
    name: str
    entity: str | None
    project: str
    cause: str
    text: str
    device_hours: float
    money: float | None


def lost_hours(connection: ApiConnection, parameters: Iterable[tuple[str, Any]]) -> LostHours:
    """Ask a server for what runs lost."""
    body: Mapping[str, Any] = connection.get("/lost-hours", [*parameters])
    causes = tuple(to_dataclass(LostByCause, cause) for cause in body["causes"])
    return to_dataclass(LostHours, {**body, "causes": causes})


def run_losses(
    connection: ApiConnection, parameters: Iterable[tuple[str, Any]], limit: int
) -> Iterator[RunLoss]:
    """Ask a server for the runs behind it, page by page.

    Args:
        limit: of a page.
    """
    after = None
    while True:
        page = connection.get("/lost-hours/runs", [*parameters, ("limit", limit), ("after", after)])
        for row in page["runs"]:
            yield to_dataclass(RunLoss, row)
        after = page["next"]
        if after is None:
            return
