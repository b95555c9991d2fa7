"""`/teams/{team}/storage`: where the files of a team are kept."""

from __future__ import annotations

from runvitals.server.access.permission import needs
from runvitals.server.buckets.routes.bucket_models import TeamStorage, bucket_place
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess
from runvitals.server.teams.routes.parameters import TheTeam

router = Router()


@router.get("/teams/{team}/storage", needs("storage:read"))
def team_storage(team: TheTeam, access: TheAccess) -> TeamStorage:
    """The bucket that a team was given when it was made, and what it has there. Without credentials."""
    table = access.accounts.buckets
    row = table.of_team(team.id)
    if row is None:
        return TeamStorage(bucket=None, objects=0, bytes=0)
    objects, size = table.use(team.id)
    return TeamStorage(bucket=bucket_place(row, f"{team.id}/"), objects=objects, bytes=size)
