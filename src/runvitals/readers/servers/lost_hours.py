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
    """What one run lost to one cause.

    Args:
        text: tells it in a sentence.
        from_ms, to_ms: of the finding to which it lost most, ms UTC; `to_ms` is None while that goes on.
    """

    run: str
    name: str
    entity: str | None
    project: str
    cause: str
    text: str
    from_ms: int
    to_ms: int | None
    device_hours: float
    money: float | None

    @property
    def label(self) -> str:
        """The run."""
        return self.run


@dataclass(frozen=True, slots=True)
class PlaceLoss:
    """What the runs of a team or user, or of one of its projects, lost.

    Args:
        project: None for all projects of the team or user.
        readable: whether you may read the runs of the project; None for a team or user.
    """

    entity: str | None
    project: str | None
    readable: bool | None
    device_hours: float
    money: float | None
    runs: int

    @property
    def label(self) -> str:
        """`TEAM/PROJECT`, or what there is of it."""
        return "/".join(name for name in (self.entity, self.project) if name is not None)


def lost_hours(
    connection: ApiConnection, parameters: Iterable[tuple[str, Any]], organisation: bool
) -> LostHours:
    """Ask a server for what runs lost."""
    body: Mapping[str, Any] = connection.get(_path(organisation), [*parameters])
    causes = tuple(to_dataclass(LostByCause, cause) for cause in body["causes"])
    return to_dataclass(LostHours, {**body, "causes": causes})


def run_losses(
    connection: ApiConnection, parameters: Iterable[tuple[str, Any]], limit: int
) -> Iterator[RunLoss]:
    """Ask a server for the runs behind it, page by page.

    Args:
        limit: of a page.
    """
    rows = _rows(connection, f"{_path(False)}/runs", "runs", [*parameters, ("limit", limit)])
    return (to_dataclass(RunLoss, row) for row in rows)


def place_losses(
    connection: ApiConnection, parameters: Iterable[tuple[str, Any]], limit: int, organisation: bool
) -> Iterator[PlaceLoss]:
    """Ask a server for the teams or projects behind it, page by page.

    Args:
        limit: of a page.
    """
    rows = _rows(connection, f"{_path(organisation)}/places", "places", [*parameters, ("limit", limit)])
    return (to_dataclass(PlaceLoss, row) for row in rows)


def _path(organisation: bool) -> str:
    return "/billing/lost-hours" if organisation else "/lost-hours"


def _rows(
    connection: ApiConnection, path: str, plural: str, parameters: list[tuple[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    after = None
    while True:
        page = connection.get(path, [*parameters, ("after", after)])
        yield from page[plural]
        after = page["next"]
        if after is None:
            return
