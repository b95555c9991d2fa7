"""`…/panels/{panel}` of a report: what a panel shows, for readers and for guests with a link."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, HTTPException, Path, Query, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from runvitals.model.errors import UnknownProject
from runvitals.model.filter import Filter
from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl, is_report_guest
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import Requester, requester_of
from runvitals.server.access.resources import ProjectItem
from runvitals.server.charts.routes.overlay import Place, in_time
from runvitals.server.files.routes.media import Sha256
from runvitals.server.http.content_response import content_response
from runvitals.server.http.responses import json_bytes, json_response
from runvitals.server.http.router import Router
from runvitals.server.reports.panel_data import PanelReader
from runvitals.server.reports.panel_rights import panel_runs
from runvitals.server.reports.panels import USUAL_POINTS, PanelExtract, ShownPanel
from runvitals.server.reports.routes import panel_models as models
from runvitals.server.reports.routes.reports import REPORT, TheReport
from runvitals.server.reports.run_sets import PanelProject
from runvitals.server.services import SharedServices, shared_services_of
from runvitals.store.errors import NotFound

PanelId = Annotated[str, Path(pattern="^[a-z0-9]{4,24}$")]
router = Router()


class RequestedPanel:
    """A panel of a report, and what reads it with the rights of the requester.

    Attributes:
        panel: as readers see it, or as the working copy has it.
    """

    def __init__(self, report: ProjectItem, panel: ShownPanel, reader: PanelReader) -> None:
        self.report = report
        self.panel = panel
        self.reader = reader

    async def read(self, requested: PanelExtract) -> dict[str, Any]:
        """Return what the panel shows."""
        answer = await self.reader.read(self.panel, requested)
        return await in_time(answer.encode)


def requested_panel(
    request: Request,
    report: TheReport,
    panel: PanelId,
    draft: Annotated[bool, Query(description="Of the working copy, for who may change it.")] = False,
) -> RequestedPanel:
    """Return the panel of the path.

    Raises:
        HTTPException: 404 if there is none, or if a guest asks for anything else than all of it.
    """
    services, requester = shared_services_of(request), requester_of(request)
    access = services.access
    nothing = HTTPException(404, f"the report has no panel {panel!r}")
    if is_report_guest(requester.principal) and request.query_params:
        raise nothing
    row = access.accounts.reports.get(report.id)
    revision = None if draft else row.published_revision
    if revision is None:
        access.require(requester, Action.REPORT_UPDATE, report, f"the working copy of report {row.id}")
    shown = services.kept_panels.panel(
        row.id, revision or row.head_revision, panel, access.accounts.reports.document
    )
    if shown is None:
        raise nothing
    return RequestedPanel(report, shown, reader_of(services, requester, report, revision is not None))


ThePanel = Annotated[RequestedPanel, Depends(requested_panel)]


def reader_of(
    services: SharedServices, requester: Requester, report: ProjectItem, published: bool
) -> PanelReader:
    """Return what reads panels of a report with the rights of the requester."""
    readable = panel_runs(services.access.directory, requester.principal, report, published=published)
    return PanelReader(
        services.library,
        services.findings,
        services.kept_means,
        services.kept_panels.run_sets,
        readable,
        project_finder(services.access),
    )


def project_finder(access: AccessControl) -> Callable[[str, str], PanelProject | None]:
    """Return what finds a project by its name, also by a former one."""

    def find(entity: str, name: str) -> PanelProject | None:
        owner = access.directory.entity_named(entity)
        if owner is None:
            return None
        try:
            project = access.directory.project_named(owner.id, name)
            if project is None:
                number = access.accounts.project_redirects.target(owner.id, name, access.clock())
            else:
                number = project.id
            if number is None:
                return None
            row = access.accounts.owned_projects.get(number)
        except (NotFound, UnknownProject):  # removed a moment ago
            return None
        return PanelProject(number, row.entity, row.name)

    return find


@router.get(
    f"{REPORT}/panels/{{panel}}/data", response_model=models.PanelData, dependencies=[needs("report:read")]
)
async def panel_data(
    request: Request,
    requested: ThePanel,
    x0: Place = None,
    x1: Place = None,
    points: Annotated[int, Query(ge=2, le=2000, description="Of each line, at most.")] = USUAL_POINTS,
) -> Response:
    """What a panel shows: its runs, the metrics that its author chose, as far as the reader may read them.

    `x0` and `x1` show a part of what the author shows. A guest gets all of it, and nothing else.
    """
    if x0 is not None and x1 is not None and x1 < x0:
        raise HTTPException(422, f"x1 ({x1:g}) is before x0 ({x0:g})")
    answer = await requested.read(PanelExtract(x0, x1, points))
    body = await run_in_threadpool(json_bytes, answer)
    return await json_response(request, body)


@router.get(
    f"{REPORT}/panels/{{panel}}/files/{{sha256}}",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}, "description": "The file."}},
    dependencies=[needs("report:read")],
)
async def panel_file(request: Request, requested: ThePanel, sha256: Sha256) -> Response:
    """A file of the media that a panel shows."""
    answer = await requested.read(PanelExtract())
    nothing = HTTPException(404, f"the panel shows no file {sha256}")
    run_id = next(
        (record["run"] for record in answer["items"] or () if _has_file(record, sha256)),
        None,
    )
    run = next((run for run in answer["runs"] if run["id"] == run_id), None)
    if run is None:
        raise nothing
    reader = requested.reader
    place = Filter(project=run["project"], entity=run["entity"], readable=reader.readable)
    for named in await reader.library.named([run["id"]], place):
        content = await named.opened.use(lambda view: view.content(sha256, _refuse_artifact), quick=True)
        if content is not None:
            return content_response(request, content, sha256)
    raise nothing


def _has_file(record: dict[str, Any], sha256: str) -> bool:
    return any(item.get("sha256") == sha256 for item in record["items"])


def _refuse_artifact(project_id: int) -> None:
    raise HTTPException(404, "the file is only in an artifact")
