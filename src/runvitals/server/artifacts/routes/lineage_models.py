"""Bodies of the API about what was made from what."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from runvitals.server.http.bodies import ResponseBody


class VersionName(ResponseBody):
    """Where a version is: in the artifact under which it was logged, or to which it was linked."""

    entity: str | None = Field(description="The team or user that has the project; null without accounts.")
    project: str
    name: str
    version: int
    aliases: list[str]


class VersionNodeSchema(VersionName):
    """A version of an artifact as a node."""

    type: str
    bytes: int
    created_ms: int
    deleted: bool = Field(description="It was deleted: who made and used it is still known.")
    links: list[VersionName] = Field(description="Where it is linked, as far as the requester may read it.")


class RunNodeSchema(ResponseBody):
    """A run as a node."""

    entity: str | None = Field(description="The team or user that has the project; null without accounts.")
    project: str
    run: str
    name: str
    group: str
    job_type: str
    started_ms: int


class ItemSchema(ResponseBody):
    """What a client of MLflow logged in a project."""

    entity: str | None = Field(description="The team or user that has the project; null without accounts.")
    project: str
    name: str


class DatasetNodeSchema(ItemSchema):
    """A dataset as a node: that of one name and digest in a project."""

    id: int
    digest: str
    source_type: str
    source: str = Field(description="The first 500 characters of where it is from.")


class ModelNodeSchema(ItemSchema):
    """A logged model as a node."""

    model_id: str
    type: str | None
    created_ms: int


class LineageNodeSchema(ResponseBody):
    """A run, version, dataset or logged model.

    All of them are null for one that the requester may not read, or that is in the trash.
    """

    kind: Literal["run", "version", "dataset", "model"]
    generation: int = Field(description="Steps from the first node; negative: what it was made from.")
    run: RunNodeSchema | None
    version: VersionNodeSchema | None
    dataset: DatasetNodeSchema | None
    model: ModelNodeSchema | None
    more_before: bool = Field(description="It was made from something that is not among the nodes.")
    more_after: bool = Field(description="Something that is not among the nodes was made from it.")


class LineageEdgeSchema(ResponseBody):
    """Which node was made from which: a run made the target, or the target is a run that used the source.

    A registered version was made from a logged model.
    """

    source: int = Field(description="The index of a node.")
    target: int


class LineageSchema(ResponseBody):
    """What a run or version was made from, and what was made from it, as a graph."""

    nodes: list[LineageNodeSchema] = Field(description="That of the path first, then by generation.")
    edges: list[LineageEdgeSchema]
    truncated: bool = Field(description="There are more nodes within these generations than are shown.")
