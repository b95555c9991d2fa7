"""`/lost-hours`: device-hours that runs lost, by cause, and the runs behind them."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from fastapi import Depends, Query
from pydantic import Field

from runvitals.model.durations import DAY_MS, HOUR_MS, MINUTE_MS
from runvitals.model.filter import Filter, ReadableRuns
from runvitals.model.run_verdict import FINDING_IDS
from runvitals.server.access.permission import needs
from runvitals.server.findings.lost_time_reports import LostTimeReports
from runvitals.server.findings.storage.lost_time_reading import LostTimePeriod
from runvitals.server.http.bodies import ResponseBody, page_body
from runvitals.server.http.errors import InvalidFields
from runvitals.server.http.listing import PageRequest, ThePage
from runvitals.server.http.responses import INVALID_PARAMETER
from runvitals.server.http.router import Router
from runvitals.server.runs.routes.parameters import TheFilter, TheReadableRuns
from runvitals.server.service_parameters import TheAccess, TheRequester
from runvitals.server.usage.run_prices import Pricing, may_see_prices

_UNITS_MS: Final = {"m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS, "w": 7 * DAY_MS}
_READS: Final = [needs("filtered run:read")]
_READS_ALL: Final = [needs("billing:read")]

router = Router(responses=INVALID_PARAMETER)


class LostTimeCauseSchema(ResponseBody):
    """What was lost to findings of one id."""

    id: str
    title: str
    device_hours: float
    money: float | None = Field(description="null: nothing has a price, or you may not see prices.")
    runs: int


class LostHoursSchema(ResponseBody):
    """Device-hours that runs lost, by cause, the most first. No hour counts twice."""

    since_ms: int
    until_ms: int
    currency: str | None = Field(description="Of the organisation's prices; null: these are not used.")
    device_hours: float
    money: float | None
    causes: list[LostTimeCauseSchema]
    judged_runs: int
    waiting_runs: int = Field(description="Runs of the period that are not judged yet.")


class LosingRunSchema(ResponseBody):
    """A run that lost device-hours to a cause."""

    run: str
    name: str
    entity: str | None
    project: str
    cause: str
    text: str = Field(description="Of the finding to which it lost most, as are the times.")
    from_ms: int
    to_ms: int | None = Field(description="ms UTC; null while it goes on.")
    device_hours: float
    money: float | None


LosingRunsPage = page_body(
    "LosingRunsPage",
    "Runs that lost device-hours, the most first; a run is there once for each cause.",
    runs=list[LosingRunSchema],
)


class LosingPlaceSchema(ResponseBody):
    """A team, user or project whose runs lost device-hours."""

    entity: str | None = Field(description="The team or user.")
    project: str | None = Field(description="null for all projects of a team or user.")
    readable: bool | None = Field(
        description="Whether you may read the runs of the project; null for a team or user."
    )
    device_hours: float
    money: float | None
    runs: int


LosingPlacesPage = page_body(
    "LosingPlacesPage",
    "Teams and users, or projects, that lost device-hours, the most first.",
    places=list[LosingPlaceSchema],
)


def the_times(
    access: TheAccess,
    since: Annotated[
        str,
        Query(
            pattern=r"^(\d{1,16}|[1-9]\d{0,5}[mhdw])$",
            description="ms UTC, or so long before `until`: such as `12h`, `7d` or `4w`.",
        ),
    ] = "7d",
    until: Annotated[int | None, Query(ge=0, le=2**53, description="ms UTC; default: now.")] = None,
) -> tuple[int, int]:
    """The time that is asked for."""
    until_ms = access.clock() if until is None else until
    length_ms = _UNITS_MS.get(since[-1])
    since_ms = int(since) if length_ms is None else max(until_ms - int(since[:-1]) * length_ms, 0)
    if since_ms >= until_ms:
        raise InvalidFields({"since": "expected a time before `until`"})
    return since_ms, until_ms


TheTimes = Annotated[tuple[int, int], Depends(the_times)]


def the_period(run_filter: TheFilter, times: TheTimes) -> LostTimePeriod:
    """The runs that the requester may read."""
    return LostTimePeriod(run_filter, *times)


ThePeriod = Annotated[LostTimePeriod, Depends(the_period)]


def the_period_of_all(
    times: TheTimes,
    entity: Annotated[
        str | None, Query(description="Only of projects of this team or user.", max_length=64)
    ] = None,
) -> LostTimePeriod:
    """The runs of the organisation, or of a team or user.

    No filter chooses among them: it would tell what is in runs that the requester may not read.
    """
    return LostTimePeriod(Filter(entity=entity), *times)


ThePeriodOfAll = Annotated[LostTimePeriod, Depends(the_period_of_all)]


def the_reports(
    access: TheAccess,
    requester: TheRequester,
    entity: Annotated[str | None, Query(include_in_schema=False)] = None,
    price: Annotated[
        float | None,
        Query(description="Of a device-hour, instead of the organisation's prices.", ge=0, le=1e9),
    ] = None,
) -> LostTimeReports:
    """Return what makes the reports, with the prices that the requester may see."""
    pricing = Pricing(price, may_see_prices(access, requester, entity))
    return LostTimeReports(access.metadata_store, access.clock(), pricing)


TheLostTime = Annotated[LostTimeReports, Depends(the_reports)]


def the_cause(
    cause: Annotated[str | None, Query(description="Only this finding, such as `idle`.")] = None,
) -> str | None:
    """The cause that is asked for."""
    if cause is not None and cause not in FINDING_IDS:
        allowed = ", ".join(FINDING_IDS)
        raise InvalidFields({"cause": f"there is no finding {cause[:60]!r}; expected one of {allowed}"})
    return cause


TheCause = Annotated[str | None, Depends(the_cause)]
By = Annotated[Literal["team", "project"], Query(description="`team`: by team or user.")]


@router.get("/lost-hours", *_READS, response_model=LostHoursSchema)
def lost_hours(period: ThePeriod, reports: TheLostTime) -> dict[str, Any]:
    """Device-hours that runs lost in a period, by cause. `project`, `entity` and filters choose the runs."""
    return reports.by_cause(period)


@router.get("/lost-hours/runs", *_READS, response_model=LosingRunsPage)
def losing_runs(
    period: ThePeriod,
    reports: TheLostTime,
    page: ThePage,
    cause: TheCause,
) -> dict[str, Any]:
    """The runs behind the lost device-hours."""
    rows, total = reports.runs(period, page.limit, page.after_id, cause)
    return {"runs": rows, **_rest(page, len(rows), total)}


@router.get("/lost-hours/places", *_READS, response_model=LosingPlacesPage)
def losing_places(
    period: ThePeriod,
    reports: TheLostTime,
    page: ThePage,
    cause: TheCause,
    readable: TheReadableRuns,
    by: By = "team",
) -> dict[str, Any]:
    """The teams and users, or the projects, behind the lost device-hours."""
    return _owners(period, reports, page, cause, readable, by)


@router.get("/billing/lost-hours", *_READS_ALL, response_model=LostHoursSchema)
def lost_hours_of_all(period: ThePeriodOfAll, reports: TheLostTime) -> dict[str, Any]:
    """Device-hours that the runs of the organisation lost, also those that you may not read, by cause."""
    return reports.by_cause(period)


@router.get("/billing/lost-hours/places", *_READS_ALL, response_model=LosingPlacesPage)
def losing_places_of_all(
    period: ThePeriodOfAll,
    reports: TheLostTime,
    page: ThePage,
    cause: TheCause,
    readable: TheReadableRuns,
    by: By = "team",
) -> dict[str, Any]:
    """The teams and users, or the projects, behind the lost device-hours of the organisation."""
    return _owners(period, reports, page, cause, readable, by)


def _owners(
    period: LostTimePeriod,
    reports: LostTimeReports,
    page: PageRequest,
    cause: str | None,
    readable: ReadableRuns | None,
    by: str,
) -> dict[str, Any]:
    rows, total = reports.places(period, by == "project", page.limit, page.after_id, cause)
    places = [
        {
            "entity": row.entity,
            "project": row.project,
            "readable": _is_readable(row.project_id, readable),
            "device_hours": round(row.hours, 3),
            "money": money,
            "runs": row.runs,
        }
        for row, money in rows
    ]
    return {"places": places, **_rest(page, len(rows), total)}


def _is_readable(project_id: int | None, readable: ReadableRuns | None) -> bool | None:
    return None if project_id is None else readable is None or project_id in readable.projects


def _rest(page: PageRequest, row_count: int, total: int) -> dict[str, Any]:
    """How many rows there are, and the cursor of the next page."""
    end = page.after_id + row_count
    return {"total": total, "next": str(end) if row_count and end < total else None}
