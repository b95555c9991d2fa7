"""Nodes of a lineage as the requester may see them: those that they may not read have no names."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from fastapi import HTTPException, Request

from runvitals.server.access.control import AccessControl
from runvitals.server.artifacts.lineage_walk import NodeKey, NodeKind
from runvitals.server.artifacts.link_refusal import link_json
from runvitals.server.artifacts.storage.lineage_graph import LineageRun, LineageVersion
from runvitals.server.artifacts.storage.logged_items import ITEM_KINDS, LoggedItem
from runvitals.server.artifacts.storage.rows import CollectionVersion


class ReadableNodes:
    """The nodes of a graph, and which of them the requester may read.

    Args:
        named: how the request names a version, which may be the only name that the requester may know.
    """

    def __init__(
        self, access: AccessControl, request: Request, named: CollectionVersion | None = None
    ) -> None:
        self._access = access
        self._request = request
        self._table = access.metadata_store.artifacts.lineage_graph
        self._logged_items = access.metadata_store.artifacts.logged_items
        self._named = named
        self._readable_runs = access.readable_runs(request)
        self._projects: dict[int, bool] = {}
        self._runs: dict[int, LineageRun] = {}
        self._versions: dict[int, LineageVersion] = {}
        self._items: dict[NodeKey, LoggedItem] = {}

    def readable_of(self, nodes: Collection[NodeKey]) -> set[NodeKey]:
        """Read nodes, and return those that the requester may read. Runs in the trash are not among them."""
        runs = self._table.runs(_numbers(nodes, "run"))
        versions = self._table.versions(_numbers(nodes, "version"))
        items = {
            NodeKey(kind, number): item
            for kind in ITEM_KINDS
            for number, item in self._logged_items.read(kind, _numbers(nodes, kind)).items()
        }
        self._runs |= runs
        self._versions |= versions
        self._items |= items
        self._read_projects(versions.values(), items.values())
        readable = {NodeKey("run", number) for number, run in runs.items() if self._may_read_run(run)}
        readable |= {node for node, item in items.items() if self._projects[item.project_id]}
        return readable | {
            NodeKey("version", number)
            for number, version in versions.items()
            if self._may_read_origin(version) or self._names(version)
        }

    def shown(self, node: NodeKey) -> dict[str, Any]:
        """Return a node that was read and may be."""
        if node.kind == "run":
            return self.run(node.id)
        if node.kind == "version":
            return self.version(node.id)
        return self._items[node].to_json()

    def run(self, number: int) -> dict[str, Any]:
        """Return a run that was read."""
        run = self._runs[number]
        return {
            "entity": run.entity,
            "project": run.project,
            "run": run.uid,
            "name": run.name,
            "group": run.group,
            "job_type": run.job_type,
            "started_ms": run.started_ms,
        }

    def version(self, number: int) -> dict[str, Any]:
        """Return a version that was read, by the first name that the requester may know."""
        version = self._versions[number]
        names = self._names(version)
        origin = version.version.collection
        fields = {
            "type": origin.type,
            "bytes": version.version.bytes,
            "created_ms": version.version.created_ms,
            "deleted": version.version.state == "deleted",
            "links": [link_json(name) for name in names if name.collection.id != origin.id],
        }
        if names:
            return {**link_json(names[0]), **fields}
        of_deleted = {"entity": origin.entity, "project": origin.project, "name": origin.name}
        return {**of_deleted, "version": version.version.version, "aliases": [], **fields}

    def _names(self, version: LineageVersion) -> list[CollectionVersion]:
        """Return the names of a version that the requester may know, that of the request first."""
        names = [name for name in version.memberships if self._projects[name.collection.project_id]]
        if self._named is not None and self._named.version.id == version.version.id:
            return [self._named, *(name for name in names if name.id != self._named.id)]
        return names

    def _may_read_origin(self, version: LineageVersion) -> bool:
        return self._projects[version.version.collection.project_id]

    def _may_read_run(self, run: LineageRun) -> bool:
        return not run.deleted and (self._readable_runs is None or self._readable_runs.has(run))

    def _read_projects(self, versions: Iterable[LineageVersion], items: Iterable[LoggedItem]) -> None:
        ids = {item.project_id for item in items} | {
            collection.project_id
            for version in versions
            for collection in (version.version.collection, *(name.collection for name in version.memberships))
        }
        fresh = ids.difference(self._projects)
        readable = fresh
        if fresh and self._access.mode() == "accounts":
            readable = self._access.projects_with_artifacts(self._request, fresh)
        self._projects |= {number: number in readable for number in fresh}


def known_run_number(run_id: str, number: int | None, access: AccessControl) -> int:
    """Return the number of the run of a path, also on a server without accounts, where no right is checked.

    Raises:
        HTTPException: 404 if there is none.
    """
    if number is None:
        row = access.metadata_store.runs.find(run_id, access.clock())
        number = None if row is None else row.id
    if number is None:
        raise HTTPException(404, f"there is no run {run_id!r}")
    return number


def _numbers(nodes: Iterable[NodeKey], kind: NodeKind) -> list[int]:
    return [node.id for node in nodes if node.kind == kind]
