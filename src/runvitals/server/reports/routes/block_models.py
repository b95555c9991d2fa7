"""The blocks of reports, as requests and responses have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field, TypeAdapter, field_validator, model_validator

from runvitals.model import filter_text
from runvitals.model.report_panels import PanelKind
from runvitals.server.http.bodies import RequestBody
from runvitals.server.reports import document

ItemId = Annotated[str, Field(pattern="^[a-z0-9]{4,24}$")]
"""The id of a block, panel or run set. The client makes it."""
Name = Annotated[str, Field(max_length=256)]
RunId = Annotated[str, Field(min_length=1, max_length=256)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


class ReportText(RequestBody):
    """Markdown: one paragraph, heading, list, quote, table, or block of code."""

    id: ItemId
    kind: Literal["text"]
    text: str = Field(max_length=document.MAX_TEXT)


class ReportImage(RequestBody):
    """An image that was uploaded to the report."""

    id: ItemId
    kind: Literal["image"]
    file: str = Field(pattern="^[0-9a-f]{64}$", description="As the upload answered it.")
    alt: str = Field("", max_length=1000)
    caption: str = Field("", max_length=1000)
    width_percent: int = Field(100, ge=10, le=100)


class ReportRunSet(RequestBody):
    """The runs that panels show: those that a filter selects, or chosen ones."""

    id: ItemId
    name: Name = ""
    entity: str = Field(min_length=1, max_length=64)
    project: str = Field(min_length=1, max_length=256)
    filter: str = Field("", max_length=2000, description="As in the search field of the table of runs.")
    group: list[Name] = Field([], max_length=5)
    sort: str = Field("", max_length=500)
    limit: int = Field(10, ge=1, le=document.MAX_RUNS)
    runs: list[RunId] | None = Field(
        None, max_length=document.MAX_RUNS, description="These runs, not the filter's."
    )
    hidden: list[RunId] = Field([], max_length=1000)
    colors: dict[RunId, Annotated[int, Field(ge=0, le=1000)]] = Field(
        {}, max_length=1000, description="Places in the palette, by run."
    )

    @field_validator("filter")
    @classmethod
    def _check_filter(cls, text: str) -> str:
        filter_text.parse(text)
        return text


class PanelQuery(RequestBody):
    """A metric that a panel reads, or all whose names match a regular expression."""

    source: Literal["logged", "system"]
    name: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    pattern: Annotated[str, Field(min_length=1, max_length=200)] | None = None

    @model_validator(mode="after")
    def _check_one(self) -> PanelQuery:
        if (self.name is None) == (self.pattern is None):
            raise ValueError("expected a name or a pattern, not both")
        return self


class PanelZoom(RequestBody):
    """The part of the x-axis that a panel shows."""

    min: Finite
    max: Finite

    @model_validator(mode="after")
    def _check_order(self) -> PanelZoom:
        if self.min >= self.max:
            raise ValueError("expected min below max")
        return self


class ReportPanel(RequestBody):
    """A live panel. It reads its queries of its run sets, and nothing else."""

    id: ItemId
    kind: PanelKind
    title: Name = ""
    columns: int = Field(4, ge=2, le=12)
    rows: int = Field(4, ge=2, le=16)
    run_sets: list[ItemId] = Field(max_length=document.MAX_RUN_SETS)
    settings: dict[str, Any] = Field({}, description="As the panels of a workspace have them.")
    queries: list[PanelQuery] = Field([], max_length=document.MAX_QUERIES)
    zoom: PanelZoom | None = None
    frozen_ms: Annotated[int, Field(ge=0, le=2**53)] | None = Field(
        None, description="The panel shows the values of this time; null: today's."
    )

    @field_validator("settings")
    @classmethod
    def _check_settings(cls, settings: dict[str, Any]) -> dict[str, Any]:
        document.check_json(settings)
        return settings


class ReportPanels(RequestBody):
    """A grid of panels over run sets."""

    id: ItemId
    kind: Literal["panels"]
    run_sets: list[ReportRunSet] = Field([], max_length=document.MAX_RUN_SETS)
    panels: list[ReportPanel] = Field([], max_length=document.MAX_PANELS)

    @model_validator(mode="after")
    def _check_run_sets(self) -> ReportPanels:
        ids = {run_set.id for run_set in self.run_sets}
        if len(ids) < len(self.run_sets):
            raise ValueError("two run sets of a block have the same id")
        for panel in self.panels:
            unknown = set(panel.run_sets) - ids
            if unknown:
                raise ValueError(f"panel {panel.id!r} names a run set that its block lacks: {min(unknown)!r}")
        return self


ReportBlock = Annotated[ReportText | ReportImage | ReportPanels, Field(discriminator="kind")]
Blocks = Annotated[list[ReportBlock], Field(max_length=document.MAX_BLOCKS)]
_BLOCKS: Final[TypeAdapter[list[ReportText | ReportImage | ReportPanels]]] = TypeAdapter(Blocks)


def checked_blocks(blocks: Sequence[Any]) -> list[dict[str, Any]]:
    """Return blocks, as models or as their JSON, as they are stored.

    Raises:
        ValidationError: one of them is invalid.
    """
    if not all(isinstance(block, BaseModel) for block in blocks):
        blocks = _BLOCKS.validate_python(blocks)
    stored: list[dict[str, Any]] = _BLOCKS.dump_python(list(blocks), mode="json")
    return stored
