"""Why a deletion is refused: 409, with the links that the requester may read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.requester import Requester
from runvitals.server.artifacts.storage.rows import CollectionVersion, LinkedVersions
from runvitals.server.http.errors import DetailedError


def readable_links(
    access: AccessControl, requester: Requester, links: Iterable[CollectionVersion]
) -> list[CollectionVersion]:
    """Return the links in projects whose artifacts the requester may see."""
    if access.mode() != "accounts":
        return list(links)
    links = list(links)
    may = {
        number: access.may(requester, Action.ARTIFACT_READ, access.directory.project(number))
        for number in {link.collection.project_id for link in links}
    }
    return [link for link in links if may[link.collection.project_id]]


def refusal(access: AccessControl, requester: Requester, what: str, error: LinkedVersions) -> DetailedError:
    """Return the response to a request to delete something that is linked.

    Args:
        what: such as `the artifact`.
    """
    links = readable_links(access, requester, error.links)
    more = {"links": [link_json(link) for link in links], "links_total": len(error.links)}
    return DetailedError(409, f"{what} cannot be deleted: {error.text(links)}", more)


def link_json(link: CollectionVersion) -> dict[str, Any]:
    """Return where a version is."""
    collection = link.collection
    return {
        "entity": collection.entity,
        "project": collection.project,
        "name": collection.name,
        "version": link.number,
        "aliases": list(link.aliases),
    }
