"""`PATCH /projects/{project}/artifacts/{name}`: after how long the versions of an artifact are deleted."""

from __future__ import annotations

from typing import Final

from fastapi import HTTPException
from pydantic import Field

from runvitals.model.durations import DAY_MS
from runvitals.server.access.permission import needs
from runvitals.server.artifacts.routes.artifact_models import TimeToLiveSchema
from runvitals.server.artifacts.routes.artifacts import OWNED, PLAIN, Name, TheProjectNumber
from runvitals.server.artifacts.routes.deletions import known_collection, record
from runvitals.server.http.bodies import RequestBody
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess, TheRequester

_UPDATES: Final = [needs("artifact:update")]
_MOST_S: Final = 36_525 * DAY_MS // 1000

router = Router()


class TimeToLiveForm(RequestBody):
    """What of an artifact is changed."""

    ttl_s: int | None = Field(
        ge=60,
        le=_MOST_S,
        description="Seconds from the logging of a version to its deletion; null: versions are kept.",
    )


@router.patch(OWNED + "/{name}", *_UPDATES)
@router.patch(PLAIN + "/{name}", *_UPDATES)
def set_time_to_live(
    changes: TimeToLiveForm,
    project: TheProjectNumber,
    name: Name,
    access: TheAccess,
    requester: TheRequester,
) -> TimeToLiveSchema:
    """Delete versions of an artifact some time after they were logged, or keep them.

    It holds for versions that say nothing else, also for those that are there. A linked version is kept.
    """
    collection = known_collection(access, project, name)
    if collection.kind == "portfolio":
        raise HTTPException(409, "versions are linked there: set the time to live where they were logged")
    table = access.metadata_store.artifacts.collections
    changed, expiring = table.set_time_to_live(collection.id, changes.ttl_s)
    before, after = (
        {"artifact": collection.name, "ttl_s": ttl_s} for ttl_s in (collection.ttl_s, changed.ttl_s)
    )
    record(access, requester, collection, "artifact.time_to_live", before, after)
    return TimeToLiveSchema(ttl_s=changed.ttl_s, expiring_versions=expiring)
