"""`/teams/{team}/registries/{registry}/collections`: collections, their aliases and history."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Query

from runvitals.model.artifact_names import checked_alias
from runvitals.model.registry_names import PREFIX
from runvitals.server.artifacts.routes.artifact_models import CollectionSchema
from runvitals.server.artifacts.storage.rows import ArtifactConflict, Collection
from runvitals.server.audit.storage.audit import AuditEvent, AuditFilter
from runvitals.server.http.errors import DetailedError, checking
from runvitals.server.http.listing import ThePage, stored_page
from runvitals.server.http.router import Router
from runvitals.server.outside_services import OutsideServices
from runvitals.server.registry.routes import registry_models as models
from runvitals.server.registry.routes.parameters import (
    COLLECTION,
    REGISTRY,
    NamedRegistry,
    TheCollection,
    TheRegistryOfPath,
    requires,
    version_named,
)
from runvitals.server.registry.storage.registry_collections import RegistryCollection
from runvitals.server.service_parameters import TheOutsideServices
from runvitals.server.user_content.markdown import MAX_CHARACTERS, html_of

Sort = Literal["name", "-name", "created_ms", "-created_ms", "updated_ms", "-updated_ms"]
Alias = Annotated[str, Path(max_length=256)]

router = Router()


@router.get(
    f"{REGISTRY}/collections", *requires("registry:read"), response_model=models.RegistryCollectionsPage
)
def collections(
    registry: TheRegistryOfPath,
    page: ThePage,
    text: Annotated[str, Query(description="Part of name, type, description or a tag.", max_length=200)] = "",
    sort: Sort = "name",
    tag: models.Tag = None,
    owner: Annotated[str | None, Query(description="Who made it.", max_length=64)] = None,
) -> dict[str, Any]:
    """The collections of a registry."""
    table = registry.access.metadata_store.registry_collections
    rows, total = table.page(registry.row.id, text, sort, page.after_id, page.limit, tag=tag, owner=owner)
    return stored_page("collections", [_collection(row) for row in rows], total, page)


def _collection(row: RegistryCollection) -> dict[str, Any]:
    own = {name: getattr(row.collection, name) for name in CollectionSchema.model_fields}
    return {
        **own,
        "newest": row.newest,
        "aliases": row.aliases,
        "owner": row.owner,
        "downloads": row.downloads,
    }


@router.get(COLLECTION, *requires("registry:read"), response_model=models.RegistryCollectionDetail)
def collection(
    registry: TheRegistryOfPath, collection: TheCollection, outside: TheOutsideServices
) -> dict[str, Any]:
    """A collection."""
    return _detail(registry, collection, outside)


def _detail(registry: NamedRegistry, row: Collection, outside: OutsideServices) -> dict[str, Any]:
    store = registry.access.metadata_store
    return {
        **_collection(store.registry_collections.one(row)),
        "description_html": html_of(row.description[:MAX_CHARACTERS], outside.image_links()),
        "protected_aliases": store.registries.protected(registry.row.id),
    }


@router.patch(COLLECTION, *requires("registry:link"), response_model=models.RegistryCollectionDetail)
def change(
    body: models.CollectionChanges,
    registry: TheRegistryOfPath,
    collection: TheCollection,
    outside: TheOutsideServices,
) -> dict[str, Any]:
    """Rename, describe or tag a collection."""
    table = registry.access.metadata_store.artifacts.collections
    with checking("name" if body.name is not None else "tags"):
        changed = table.change(collection.id, registry.now_ms, **body.model_dump(exclude_none=True))
    return _detail(registry, changed, outside)


@router.delete(COLLECTION, *requires("registry:link"), status_code=204)
def delete(registry: TheRegistryOfPath, collection: TheCollection) -> None:
    """Delete a collection; versions stay in the projects that logged them."""
    table = registry.access.metadata_store.artifacts.collections
    table.delete(collection.id, registry.now_ms, registry.changer)


# Aliases


@router.put(f"{COLLECTION}/aliases/{{alias}}", *requires("registry:alias"), status_code=204)
def set_alias(
    alias: Alias, body: models.AliasTarget, registry: TheRegistryOfPath, collection: TheCollection
) -> None:
    """Let an alias name a version; the one that had it loses it."""
    with checking("alias"):
        checked_alias(alias)
    version = version_named(registry, collection, str(body.version))
    table = registry.access.metadata_store.artifacts.collections
    table.add_aliases(collection.id, version.version.id, [alias], registry.now_ms, registry.changer)


@router.delete(f"{COLLECTION}/aliases/{{alias}}", *requires("registry:alias"), status_code=204)
def delete_alias(alias: Alias, registry: TheRegistryOfPath, collection: TheCollection) -> None:
    """Remove an alias."""
    with checking("alias"):
        checked_alias(alias)
    version = version_named(registry, collection, alias)
    if alias == "latest":
        raise ArtifactConflictError("the alias 'latest' is always that of the newest version")
    table = registry.access.metadata_store.artifacts.collections
    table.remove_aliases(collection.id, version.version.id, [alias], registry.now_ms, registry.changer)


class ArtifactConflictError(DetailedError):
    """409: the state of a collection or version does not allow the change."""

    def __init__(self, error: str | ArtifactConflict) -> None:
        super().__init__(409, str(error), {})


@router.get(f"{COLLECTION}/history", *requires("registry:read"), response_model=models.AliasHistory)
def history(registry: TheRegistryOfPath, collection: TheCollection, page: ThePage) -> dict[str, Any]:
    """Who set which aliases, and linked and unlinked which versions."""
    target = f"{registry.row.name}/{collection.name}"
    events = AuditFilter(
        action="registry.*",
        entity_id=registry.row.entity_id,
        project=PREFIX + registry.row.name,
        target=target,
        outcome="ok",
        from_ms=collection.created_ms,
        before_id=page.after_id or None,
    )
    audit = registry.access.accounts.audit
    rows = audit.page(events, page.limit + 1)
    page_rows = rows[: page.limit]
    following = str(page_rows[-1].id) if len(rows) > page.limit else None
    return {"changes": [_change(row) for row in page_rows], "total": audit.count(events), "next": following}


def _change(event: AuditEvent) -> dict[str, Any]:
    before, after = event.before or {}, event.after or {}
    return {
        "time_ms": event.time_ms,
        "action": event.action,
        "actor": event.actor_name,
        "alias": after.get("alias") or before.get("alias"),
        "version": after.get("version"),
        "version_before": before.get("version"),
    }
