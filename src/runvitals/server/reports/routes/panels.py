"""`…/panels/{panel}` of a report: what a panel shows, for readers and for guests with a link."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, HTTPException, Path, Query, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from runvitals.model.filter import Filter
from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import Requester, requester_of
from runvitals.server.access.resources import ProjectItem
from runvitals.server.charts.routes.overlay import Place, in_time
from runvitals.server.files.routes.media import Sha256
from runvitals.server.http.content_response import content_response
from runvitals.server.http.responses import json_bytes, json_response
from runvitals.server.http.router import Router
from runvitals.server.reports.frozen import FROZEN_POINTS, FrozenPanels, with_frozen
from runvitals.server.reports.panel_data import PanelReader
from runvitals.server.reports.panels import USUAL_POINTS, WHOLE, PanelExtract, ShownPanel
from runvitals.server.reports.routes import panel_models as models
from runvitals.server.reports.routes.panel_readers import reader_of
from runvitals.server.reports.routes.reports import REPORT, TheReport, author_of, record
from runvitals.server.service_parameters import TheAccess, TheRequester
from runvitals.server.services import SharedServices, shared_services_of

PanelId = Annotated[str, Path(pattern="^[a-z0-9]{4,24}$")]
router = Router()


class RequestedPanel:
    """A panel of a report, and what reads it with the rights of the requester.

    Attributes:
        panel: as readers see it, or as the working copy has it.
    """

    def __init__(
        self, report: ProjectItem, panel: ShownPanel, reader: PanelReader, frozen: FrozenPanels
    ) -> None:
        self.report = report
        self.panel = panel
        self.reader = reader
        self.frozen = frozen

    async def read(self, requested: PanelExtract = WHOLE) -> dict[str, Any]:
        """Return what the panel shows: stored values if it is frozen, otherwise those of now."""
        if self.panel.frozen_ms is not None:
            readable = None if self.reader.readable is None else self.reader.readable.projects
            return await run_in_threadpool(
                self.frozen.answer, self.report.id, self.panel, self.panel.frozen_ms, readable
            )
        answer = await self.reader.read(self.panel, requested)
        return await in_time(answer.encode)


def requested_panel(
    request: Request,
    report: TheReport,
    panel: PanelId,
    draft: Annotated[bool, Query(description="Of the working copy, for who may change it.")] = False,
) -> RequestedPanel:
    """Return the panel of the path, or raise 404."""
    services, requester = shared_services_of(request), requester_of(request)
    access = services.access
    row = access.accounts.reports.get(report.id)
    revision = None if draft else row.published_revision
    if revision is None:
        access.require(requester, Action.REPORT_UPDATE, report, f"the working copy of report {row.id}")
    panels = services.kept_panels().panels(
        row.id, revision or row.head_revision, access.accounts.reports.document
    )
    shown_panel = panels.get(panel)
    if shown_panel is None:
        raise HTTPException(404, f"the report has no panel {panel!r}")
    reader = reader_of(services, requester, report, revision is not None)
    return RequestedPanel(report, shown_panel, reader.with_panels(panels.values()), frozen_panels(services))


def panel_to_freeze(request: Request, report: TheReport, panel: PanelId) -> RequestedPanel:
    """Return the panel of the working copy, or raise 404."""
    return requested_panel(request, report, panel, draft=True)


ThePanel = Annotated[RequestedPanel, Depends(requested_panel)]
TheFreezable = Annotated[RequestedPanel, Depends(panel_to_freeze)]


def frozen_panels(services: SharedServices) -> FrozenPanels:
    """Return what stores and reads frozen panels."""
    accounts = services.access.accounts
    return FrozenPanels(accounts.frozen_panels, accounts.report_files, services.files)


@router.get(f"{REPORT}/panels/{{panel}}/data", needs("report:read"), response_model=models.PanelData)
async def panel_data(
    request: Request,
    requested: ThePanel,
    x0: Place = None,
    x1: Place = None,
    points: Annotated[int, Query(ge=2, le=2000, description="Of each line, at most.")] = USUAL_POINTS,
) -> Response:
    """Return what a panel shows: its runs and the metrics that its author chose, as far as you may read them.

    `x0` and `x1` show a part of what the author shows. A guest gets all of it, and nothing else.
    """
    if x0 is not None and x1 is not None and x1 < x0:
        raise HTTPException(422, f"x1 ({x1:g}) is before x0 ({x0:g})")
    answer = await requested.read(PanelExtract(x0, x1, points))
    body = await run_in_threadpool(json_bytes, answer)
    return await json_response(request, body)


@router.get(
    f"{REPORT}/panels/{{panel}}/files/{{sha256}}",
    needs("report:read"),
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}, "description": "The file."}},
)
async def panel_file(request: Request, requested: ThePanel, sha256: Sha256) -> Response:
    """A file of the media that a panel shows."""
    answer = await requested.read()
    nothing = HTTPException(404, f"the panel shows no file {sha256}")
    run_id = next(
        (record["run"] for record in answer["items"] or () if _has_file(record, sha256)),
        None,
    )
    run = next((run for run in answer["runs"] if run["id"] == run_id), None)
    if run is None:
        raise nothing
    reader = requested.reader
    project = await run_in_threadpool(reader.find_project, run["entity"], run["project"])
    if project is None:
        raise nothing
    project_filter = Filter(project=project.project, entity=project.entity, readable=reader.readable)
    for named_run in await reader.library.named([run["id"]], project_filter):
        content = await named_run.opened.use(lambda view: view.content(sha256, _refuse_artifact), quick=True)
        if content is not None:
            return await run_in_threadpool(content_response, request, content, sha256)
    raise nothing


@router.post(f"{REPORT}/panels/{{panel}}/freeze", needs("report:update"), response_model=models.FrozenPanel)
async def freeze_panel(
    request: Request, requested: TheFreezable, access: TheAccess, requester: TheRequester
) -> dict[str, Any]:
    """Store what you see of a panel now, so that the report shows it from its next publication on."""
    now_ms, panel = access.clock(), requested.panel
    answer = await requested.reader.read(panel, PanelExtract(points=FROZEN_POINTS))
    answer_fields = await in_time(answer.encode)
    if answer_fields["problem"] is not None:
        raise HTTPException(409, f"the panel cannot be frozen: {answer_fields['problem']}")
    values = {"answer": answer_fields, "projects": answer.projects}

    def keep() -> int:
        requested.frozen.freeze(requested.report.id, panel.id, json_bytes(values), requester.user_id, now_ms)
        return _set_frozen(access, requester, requested.report.id, panel.id, now_ms)

    try:
        return {"revision": await run_in_threadpool(keep), "frozen_ms": now_ms}
    except ValueError as error:
        raise HTTPException(409, f"the panel cannot be frozen: {error}") from None


@router.delete(f"{REPORT}/panels/{{panel}}/freeze", needs("report:update"), response_model=models.FrozenPanel)
def thaw_panel(requested: TheFreezable, access: TheAccess, requester: TheRequester) -> dict[str, Any]:
    """Let a panel show the values of the day again. Versions that show the stored values keep them."""
    revision = _set_frozen(access, requester, requested.report.id, requested.panel.id, None)
    return {"revision": revision, "frozen_ms": None}


def _set_frozen(
    access: AccessControl, requester: Requester, report_id: int, panel_id: str, frozen_ms: int | None
) -> int:
    """Note in the working copy from when the values of a panel are; returns its revision."""
    reports = access.accounts.reports
    head = reports.get(report_id).head_revision
    document = with_frozen(reports.document(report_id, head), panel_id, frozen_ms)
    saved = reports.save(report_id, head, document, author_of(requester), access.clock())
    record(access, requester, saved.row, "report.update", revision=saved.row.head_revision)
    return saved.row.head_revision


def _has_file(record: dict[str, Any], sha256: str) -> bool:
    return any(item.get("sha256") == sha256 for item in record["items"])


def _refuse_artifact(project_id: int) -> None:
    raise HTTPException(404, "the file is only in an artifact")
