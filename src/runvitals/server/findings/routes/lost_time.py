"""`/lost-hours`: device-hours that runs lost, by cause, and the runs behind them."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Depends, Query
from pydantic import Field

from runvitals.model.durations import DAY_MS, HOUR_MS, MINUTE_MS
from runvitals.model.run_verdict import FINDING_IDS
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import TheRequester
from runvitals.server.findings.lost_time import LostTimeReports
from runvitals.server.findings.storage.lost_time import LostTimePeriod
from runvitals.server.http.bodies import ResponseBody
from runvitals.server.http.errors import InvalidFields
from runvitals.server.http.listing import ThePage
from runvitals.server.http.responses import INVALID_PARAMETER
from runvitals.server.http.router import Router
from runvitals.server.runs.routes.parameters import TheFilter
from runvitals.server.service_parameters import TheAccess
from runvitals.server.usage.run_prices import Pricing, may_see_prices

_UNITS_MS: Final = {"m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS, "w": 7 * DAY_MS}
_READS: Final = [needs("filtered run:read")]

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
    text: str
    device_hours: float
    money: float | None


class LosingRunsPage(ResponseBody):
    """Runs that lost device-hours, the most first; a run is there once for each cause."""

    runs: list[LosingRunSchema]
    total: int
    next: str | None


def the_period(
    run_filter: TheFilter,
    access: TheAccess,
    since: Annotated[
        str,
        Query(
            pattern=r"^(\d{1,16}|[1-9]\d{0,5}[mhdw])$",
            description="ms UTC, or so long before `until`: such as `12h`, `7d` or `4w`.",
        ),
    ] = "7d",
    until: Annotated[int | None, Query(ge=0, le=2**53, description="ms UTC; default: now.")] = None,
) -> LostTimePeriod:
    """The runs that the requester may read, and the time that is asked for."""
    until_ms = access.clock() if until is None else until
    length_ms = _UNITS_MS.get(since[-1])
    since_ms = int(since) if length_ms is None else max(until_ms - int(since[:-1]) * length_ms, 0)
    if since_ms >= until_ms:
        raise InvalidFields({"since": "expected a time before `until`"})
    return LostTimePeriod(run_filter, since_ms, until_ms)


ThePeriod = Annotated[LostTimePeriod, Depends(the_period)]


def the_reports(
    access: TheAccess,
    requester: TheRequester,
    run_filter: TheFilter,
    price: Annotated[
        float | None,
        Query(description="Of a device-hour, instead of the organisation's prices.", ge=0, le=1e9),
    ] = None,
) -> LostTimeReports:
    """Return what makes the reports, with the prices that the requester may see."""
    pricing = Pricing(price, may_see_prices(access, requester, run_filter.entity))
    return LostTimeReports(access.metadata_store, access.clock(), pricing)


TheLostTime = Annotated[LostTimeReports, Depends(the_reports)]


@router.get("/lost-hours", response_model=LostHoursSchema, dependencies=_READS)
def lost_hours(period: ThePeriod, reports: TheLostTime) -> dict[str, Any]:
    """Device-hours that runs lost in a period, by cause. `project`, `entity` and filters choose the runs."""
    return reports.by_cause(period)


@router.get("/lost-hours/runs", response_model=LosingRunsPage, dependencies=_READS)
def losing_runs(
    period: ThePeriod,
    reports: TheLostTime,
    page: ThePage,
    cause: Annotated[str | None, Query(description="Only this finding, such as `idle`.")] = None,
) -> dict[str, Any]:
    """The runs behind the lost device-hours."""
    if cause is not None and cause not in FINDING_IDS:
        allowed = ", ".join(FINDING_IDS)
        raise InvalidFields({"cause": f"there is no finding {cause[:60]!r}; expected one of {allowed}"})
    first = page.after_id
    rows, total = reports.runs(period, page.limit, first, cause)
    end = first + len(rows)
    return {"runs": rows, "total": total, "next": str(end) if rows and end < total else None}
