"""`/runs/{run}/findings`: what is wrong with a run, why, what it costs, and what to do."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query, Request
from fastapi.responses import Response
from pydantic import Field

from runvitals.server.access.permission import needs
from runvitals.server.charts.series_definitions import series_name
from runvitals.server.findings.kept_result import with_prices
from runvitals.server.http.bodies import ResponseBody
from runvitals.server.http.responses import RUN_ERRORS, json_bytes, json_response, read_or_422
from runvitals.server.http.router import Router
from runvitals.server.library.run_library import RunView
from runvitals.server.runs.routes.parameters import TheLibrary, TheRun
from runvitals.server.services import Services, services_of

router = Router(responses=RUN_ERRORS)


class VerdictSchema(ResponseBody):
    """The finding that costs most, `healthy` or `unknown`."""

    id: str
    text: str


class EvidenceSchema(ResponseBody):
    """The value of a series that decided, and what it is compared with."""

    key: str
    name: str = Field(description="The series in words.")
    host: str
    value: float
    unit: str
    normal: float | None


class CostSchema(ResponseBody):
    """What a finding cost."""

    device_hours: float
    money: float | None


class FindingSchema(ResponseBody):
    """Something that is wrong with a run, or worth to know."""

    id: str
    severity: Literal["critical", "warning", "info"]
    confidence: Literal["certain", "likely", "possible"]
    from_ms: int = Field(description="ms UTC.")
    to_ms: int | None = Field(description="ms UTC; null while it goes on.")
    share: float = Field(description="Of the run's time, 0 to 1.")
    hosts: list[str]
    devices: list[int]
    ranks: list[int]
    text: str
    evidence: list[EvidenceSchema]
    cost: CostSchema
    advice: str
    docs: str


class UndecidedSchema(ResponseBody):
    """A rule that could not decide, and the series that it would need."""

    id: str
    needs: list[str]
    why: str


class FindingsSchema(ResponseBody):
    """What the rules say about a run."""

    verdict: VerdictSchema
    findings: list[FindingSchema]
    fine: list[str]
    undecided: list[UndecidedSchema]


@router.get("/runs/{run}/findings", needs("run:read"), response_model=FindingsSchema)
async def run_findings(
    request: Request,
    run: TheRun,
    library: TheLibrary,
    price: Annotated[
        float | None,
        Query(
            description="Of a device-hour, to tell costs in money too; by default that of the organisation, "
            "for those who may see prices.",
            ge=0,
            le=1e9,
        ),
    ] = None,
) -> Response:
    """Return what is wrong with the run, what rules found fine, and what they could not decide."""
    now_ms, services = library.clock(), services_of(request)

    def read(view: RunView) -> bytes:
        findings = services.findings.findings(view, now_ms)
        of_device = _price(request, services, view, now_ms) if price is None else price
        body = with_prices(findings, of_device).to_json()
        for finding in body["findings"]:
            for evidence in finding["evidence"]:
                evidence["name"] = series_name(evidence["key"])
        return json_bytes(body)

    return await json_response(request, await read_or_422(run, read))


def _price(request: Request, services: Services, view: RunView, now_ms: int) -> float | None:
    """Return the organisation's price of a run's device-hour; None if it has none or may not be seen."""
    access = services.access
    if access is None:
        return None
    return services.findings.price(view, now_ms, access, access.requester(request))
