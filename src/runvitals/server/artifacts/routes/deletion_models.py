"""Bodies of the API about what a deletion of artifacts breaks."""

from __future__ import annotations

from pydantic import Field

from runvitals.server.artifacts.routes.lineage_models import RunNodeSchema, VersionName, VersionNodeSchema
from runvitals.server.http.bodies import ResponseBody


class DependentsSchema(ResponseBody):
    """What depends on versions of artifacts: at most 100 of each are shown.

    What the requester may not read is counted and not shown.
    """

    used_by: list[RunNodeSchema] = Field(description="The runs that used it, the newest first.")
    used_by_total: int
    made_from: list[VersionNodeSchema] = Field(description="The versions that these runs made.")
    made_from_total: int
    links: list[VersionName] = Field(description="Where it is linked: it must be unlinked there first.")
    links_total: int = Field(description="100: as many, or more.")
    aliases: list[str] = Field(description="Those that go with it.")
    deletable: bool = Field(description="It is not linked.")
    may: list[str] = Field(description="`artifact:delete` if the requester may delete it.")
