"""The registry, collection and version of a path, and who changes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Depends, HTTPException, Path, Request

from runvitals.model.artifact_names import is_version
from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs, with_accounts
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import Registry
from runvitals.server.artifacts.storage.protection import Changer
from runvitals.server.artifacts.storage.rows import Collection, CollectionVersion
from runvitals.server.registry.storage.registries import RegistryRow
from runvitals.server.service_parameters import TheAccess, TheRequester

TEAM: Final = "/teams/{team}/registries"
REGISTRY: Final = TEAM + "/{registry}"
COLLECTION: Final = REGISTRY + "/collections/{collection}"
VERSION: Final = COLLECTION + "/versions/{version}"
REGISTRY_ACTIONS: Final = frozenset(action for action in Action if action.kind == "registry")


def requires(action: str) -> list[Any]:
    """Return the dependencies of a route: a permission in a registry, and that there are accounts."""
    return [needs(action), with_accounts()]


@dataclass(frozen=True, slots=True)
class NamedRegistry:
    """The registry of a path, for a requester.

    Attributes:
        resource: as decisions need it.
        changer: the requester, as who changes it.
    """

    row: RegistryRow
    resource: Registry
    access: AccessControl
    requester: Requester

    @property
    def changer(self) -> Changer:
        """The requester as who changes the registry."""
        return Changer(self.requester.actor, self.may(Action.REGISTRY_PROTECTED_ALIAS))

    @property
    def now_ms(self) -> int:
        """The time of the change."""
        return self.access.clock()

    def may(self, action: Action) -> bool:
        """Return whether the requester may do an action in the registry."""
        return self.access.may(self.requester, action, self.resource)


def the_registry(
    request: Request,
    team: Annotated[str, Path(description="The team's name.", max_length=64)],
    registry: Annotated[str, Path(description="The name of the registry.", max_length=128)],
    access: TheAccess,
    requester: TheRequester,
) -> NamedRegistry:
    """Return the registry of the path; `needs` has found it."""
    resource: Registry = request.state.registry
    return NamedRegistry(access.metadata_store.registries.get(resource.id), resource, access, requester)


TheRegistryOfPath = Annotated[NamedRegistry, Depends(the_registry)]


def the_collection(
    registry: TheRegistryOfPath,
    collection: Annotated[str, Path(description="The name of the collection.", max_length=256)],
) -> Collection:
    """Return the collection of the path, or raise 404."""
    row = registry.access.metadata_store.artifacts.collections.named(registry.row.id, collection)
    if row is None:
        raise HTTPException(404, f"there is no collection {collection!r} in the registry")
    return row


TheCollection = Annotated[Collection, Depends(the_collection)]


def the_version(
    registry: TheRegistryOfPath,
    collection: TheCollection,
    version: Annotated[str, Path(description="A number, `v3` or an alias.", max_length=256)],
) -> CollectionVersion:
    """Return the version of the path, or raise 404."""
    return version_named(registry, collection, version)


def version_named(registry: NamedRegistry, collection: Collection, name: str) -> CollectionVersion:
    """Return a version of a collection by its number, such as `3` or `v3`, or by an alias.

    Raises:
        HTTPException: 404: there is none.
    """
    alias = f"v{name}" if is_version(f"v{name}") else name
    member = registry.access.metadata_store.artifacts.collections.member_of(collection.id, alias)
    if member is None:
        raise HTTPException(404, f"there is no version {name!r} of {collection.name!r}")
    return member


TheLinkedVersion = Annotated[CollectionVersion, Depends(the_version)]
