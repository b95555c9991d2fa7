"""`/artifacts`: search the artifacts of all projects."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Query, Request

from runvitals.server.access.permission import needs
from runvitals.server.artifacts.routes import artifact_models as models
from runvitals.server.artifacts.storage.logged_items import ITEM_KINDS
from runvitals.server.http.responses import INVALID_PARAMETER
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess

_MAX_WORDS: Final = 8

router = Router(responses=INVALID_PARAMETER)


@router.get("/artifacts", needs("filtered artifact:read"), response_model=models.MatchingCollections)
def search(
    request: Request,
    access: TheAccess,
    text: Annotated[
        str,
        Query(
            min_length=1,
            max_length=200,
            description="Every word of it, up to the eighth, occurs in name, type, description or tags.",
        ),
    ],
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> Any:
    """Artifacts with some words, in all projects whose artifacts the requester may see, the newest first."""
    readable = access.readable_runs(request)
    projects = None if readable is None else access.projects_with_artifacts(request, readable.projects)
    words, store = text.split()[:_MAX_WORDS], access.metadata_store.artifacts
    items = {kind: store.logged_items.with_words(kind, words, projects, limit) for kind in ITEM_KINDS}
    return {
        "collections": [
            {name: getattr(row, name) for name in models.MatchingCollectionSchema.model_fields}
            for row in store.collections.with_words(words, projects, limit)
        ],
        "datasets": [item.to_json() for item in items["dataset"]],
        "models": [item.to_json() for item in items["model"]],
    }
