"""The JSON bodies of what panels of reports show."""

from __future__ import annotations

from pydantic import Field

from runvitals.model.run_state import State
from runvitals.server.charts.routes.overlay_models import OverlayLine, OverlayMetric
from runvitals.server.compare.routes.compare_models import FactRowSchema, StatisticRowSchema
from runvitals.server.compare.routes.importance import ImportancesSchema
from runvitals.server.files.routes.media_models import MediaRecordSchema
from runvitals.server.findings.routes.run_findings import FindingsSchema
from runvitals.server.http.bodies import ResponseBody
from runvitals.server.runs.routes import models
from runvitals.server.runs.routes.logged_models import Logged
from runvitals.server.runs.routes.output_models import PrintedPiece


class PanelRun(ResponseBody):
    """A run that a panel shows, or a group of runs that it shows as one."""

    id: str
    name: str
    state: State
    started_ms: int
    end_ms: int = Field(description="When it ended; while it is running, when it was last heard of.")
    entity: str | None = Field(description="None: a group.")
    project: str | None
    run_set: str
    group: str | None = Field(description="What the runs of a group have in common; None: a run.")
    members: int | None = Field(description="How many runs a group has; None: a run.")
    color: int | None = Field(description="The place in the palette that the author chose.")


class PanelNames(ResponseBody):
    """The metrics that a panel reads, of those that its runs have."""

    logged: list[str]
    system: list[OverlayMetric]


class PanelLineGroup(ResponseBody):
    """Lines with the same x. That of a group is the mean of its runs, between the lowest and the highest."""

    x: list[float]
    width: float | None = Field(description="Of the buckets; None: these are single values.")
    lines: list[OverlayLine]


class PanelDeviceLines(ResponseBody):
    """What each device and rank of a run sampled and logged."""

    sampled: models.Metrics | None
    logged: Logged | None


class PanelMedia(MediaRecordSchema):
    """A logged image, table or other medium of a run."""

    run: str


class PanelFindings(FindingsSchema):
    """What the rules say about a run."""

    run: str


class PanelConsole(ResponseBody):
    """The newest output of a run."""

    run: str
    cut: bool = Field(description="There was more.")
    pieces: list[PrintedPiece]


class PanelDifferences(ResponseBody):
    """In which facts runs differ, and numbers of theirs."""

    runs: list[str] = Field(description="In the order of the values.")
    facts: list[FactRowSchema]
    left_out: int
    statistics: list[StatisticRowSchema]


class PanelData(ResponseBody):
    """What a panel shows."""

    panel: str
    kind: str
    as_of_ms: int = Field(description="Of when the values are.")
    frozen: bool = Field(description="They are stored, and stay as they are.")
    runs: list[PanelRun]
    missing: int = Field(description="How many chosen runs were deleted.")
    problem: str | None = Field(description="What to show instead of values, or besides them.")
    problems: list[str] = Field(description="Parts that could not be read.")
    x: str | None = Field(description="What x counts, as `x` of `/overlay/logged`; None: no lines.")
    names: PanelNames
    lines: dict[str, list[PanelLineGroup]] = Field(description="By source and name: `logged:loss`.")
    devices: dict[str, PanelDeviceLines] = Field(
        description="By run, of panels that show each device: instead of `lines`."
    )
    items: list[PanelMedia] | None
    findings: list[PanelFindings] | None
    differences: PanelDifferences | None
    importance: ImportancesSchema | None
    console: list[PanelConsole] | None


class FrozenPanel(ResponseBody):
    """A panel after it was frozen or thawed."""

    revision: int = Field(description="Of the working copy, which says so.")
    frozen_ms: int | None = Field(description="None: it shows the values of today.")
