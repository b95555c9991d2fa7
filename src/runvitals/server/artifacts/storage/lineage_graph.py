"""What runs used and made, as a graph: the neighbours of runs, versions, datasets and logged models."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sqlalchemy import Column, ColumnElement, Connection, FromClause, Select, select, true

from runvitals.server.artifacts.lineage_walk import LineageEnds, NodeKey, NodeKind
from runvitals.server.artifacts.storage.reading import read_memberships, read_versions
from runvitals.server.artifacts.storage.rows import CollectionVersion, Version
from runvitals.server.database.database import StoredTable, among
from runvitals.server.database.tables.accounts import entity
from runvitals.server.database.tables.artifacts import artifact_membership, artifact_use, artifact_version
from runvitals.server.database.tables.registry import (
    dataset,
    dataset_use,
    logged_model,
    logged_model_run,
    model_version,
)
from runvitals.server.database.tables.runs import project, run

_EXISTING: Final = ("committed", "deleted")
"""A draft is nobody's yet; of a deleted version it stays known who made and used it."""
_ALWAYS: Final = true()
_IDS: Final[dict[NodeKind, Column[int]]] = {
    "run": run.c.id,
    "version": artifact_version.c.id,
    "dataset": dataset.c.id,
    "model": logged_model.c.id,
}


class _End(NamedTuple):
    """The kind of the nodes at one end of a link, and the column with their ids."""

    kind: NodeKind
    column: ColumnElement[int]


@dataclass(frozen=True, slots=True)
class _Link:
    """Why a node leads to another one: the rows of `table` that fulfil `where`."""

    before: _End
    after: _End
    table: FromClause
    where: ColumnElement[bool] = _ALWAYS

    def ends(self, backwards: bool) -> tuple[_End, _End]:
        """Return where a walk in a direction begins, and where it leads."""
        return (self.after, self.before) if backwards else (self.before, self.after)

    def select(self, *columns: ColumnElement[Any]) -> Select[Any]:
        return select(*columns).select_from(self.table).where(self.where)


_MODEL_RUN: Final = logged_model_run.c
_LINKS: Final = (
    _Link(
        _End("run", artifact_version.c.run_id),
        _End("version", artifact_version.c.id),
        artifact_version,
        artifact_version.c.state.in_(_EXISTING) & artifact_version.c.run_id.is_not(None),
    ),
    _Link(
        _End("version", artifact_use.c.version_id),
        _End("run", artifact_use.c.run_id),
        artifact_use.join(artifact_version, artifact_version.c.id == artifact_use.c.version_id),
        artifact_version.c.state.in_(_EXISTING),
    ),
    _Link(_End("dataset", dataset_use.c.dataset_id), _End("run", dataset_use.c.run_id), dataset_use),
    _Link(
        _End("run", _MODEL_RUN.run_id), _End("model", _MODEL_RUN.model_id), logged_model_run, _MODEL_RUN.made
    ),
    _Link(
        _End("model", _MODEL_RUN.model_id), _End("run", _MODEL_RUN.run_id), logged_model_run, ~_MODEL_RUN.made
    ),
    _Link(
        _End("model", logged_model.c.id),
        _End("version", artifact_membership.c.version_id),
        logged_model.join(model_version, model_version.c.logged_model == logged_model.c.uid).join(
            artifact_membership, artifact_membership.c.id == model_version.c.membership_id
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class LineageRun:
    """A run as a node. Times are ms UTC; see `RunPlace` for the rest."""

    run_id: int
    uid: str
    name: str
    group: str
    job_type: str
    started_ms: int
    project_id: int
    project: str
    entity: str | None
    author_id: int | None
    service_account_id: int | None
    deleted: bool


@dataclass(frozen=True, slots=True)
class LineageVersion:
    """A version as a node, with the collections that have it: the one where it was logged, and portfolios."""

    version: Version
    memberships: tuple[CollectionVersion, ...]


class LineageGraphTable(StoredTable):
    """The neighbours of nodes. The newest ones come first where only some are returned.

    Example:
        >>> metadata_store.artifacts.lineage_graph.before([NodeKey("run", 1)], 100)
        [NodeKey('version', 7)]
    """

    def before(self, nodes: Collection[NodeKey], limit: int) -> list[NodeKey]:
        """Return what some nodes were made from: of a version its run, of a run what it used."""
        return self._neighbours(nodes, limit, backwards=True)

    def after(self, nodes: Collection[NodeKey], limit: int) -> list[NodeKey]:
        """Return what was made from some nodes: of a version the runs that used it, of a run its versions."""
        return self._neighbours(nodes, limit, backwards=False)

    def _neighbours(self, nodes: Collection[NodeKey], limit: int, backwards: bool) -> list[NodeKey]:
        ids = _ids(nodes)
        with self._database.read() as connection:
            return [
                NodeKey(far.kind, number)
                for link in _LINKS
                for near, far in (link.ends(backwards),)
                if ids[near.kind]
                for number in connection.execute(
                    link.select(far.column)
                    .where(among(connection, near.column, ids[near.kind]))
                    .distinct()
                    .order_by(far.column.desc())
                    .limit(limit)
                ).scalars()
            ]

    def edges(self, nodes: Collection[NodeKey], limit: int) -> list[tuple[NodeKey, NodeKey]]:
        """Return which of some nodes were made from which, at most so many of each kind."""
        ids = _ids(nodes)
        with self._database.read() as connection:
            return [
                (NodeKey(before.kind, source), NodeKey(after.kind, target))
                for link in _LINKS
                for before, after in (link.ends(backwards=False),)
                if ids[before.kind] and ids[after.kind]
                for source, target in connection.execute(
                    link.select(before.column, after.column)
                    .where(
                        among(connection, before.column, ids[before.kind]),
                        among(connection, after.column, ids[after.kind]),
                    )
                    .distinct()
                    .order_by(after.column, before.column)
                    .limit(limit)
                )
            ]

    def ends(self, nodes: Collection[NodeKey]) -> LineageEnds:
        """Return the nodes that have neighbours besides each other."""
        ids = _ids(nodes)
        with self._database.read() as connection:
            before, after = (
                frozenset(key for link in _LINKS for key in _leading_out(connection, link, backwards, ids))
                for backwards in (True, False)
            )
        return LineageEnds(before, after)

    def runs(self, ids: Iterable[int]) -> dict[int, LineageRun]:
        """Return runs by their number, those in the trash too."""
        columns = run.c
        with self._database.read() as connection:
            statement: Select[Any] = (
                select(
                    columns.id,
                    columns.uid,
                    columns.name,
                    columns.group_name,
                    columns.job_type,
                    columns.started_ms,
                    columns.project_id,
                    project.c.name,
                    entity.c.name,
                    columns.author_id,
                    columns.service_account_id,
                    columns.deleted_ms.is_not(None),
                )
                .join(project, project.c.id == columns.project_id)
                .outerjoin(entity, entity.c.id == project.c.entity_id)
                .where(among(connection, columns.id, ids))
            )
            return {row[0]: LineageRun(*row) for row in connection.execute(statement)}

    def versions(self, ids: Iterable[int]) -> dict[int, LineageVersion]:
        """Return versions by their number, as far as their projects are not in the trash."""
        columns = artifact_membership.c
        with self._database.read() as connection:
            versions = read_versions(connection, ids)
            statement = select(artifact_membership).where(among(connection, columns.version_id, versions))
            memberships: dict[int, list[CollectionVersion]] = {number: [] for number in versions}
            for membership in read_memberships(connection, statement.order_by(columns.id)):
                memberships[membership.version.id].append(membership)
        return {
            number: LineageVersion(version, tuple(memberships[number]))
            for number, version in versions.items()
        }


def _ids(nodes: Iterable[NodeKey]) -> dict[NodeKind, list[int]]:
    """Return the numbers of nodes by their kind."""
    ids: dict[NodeKind, list[int]] = {kind: [] for kind in _IDS}
    for kind, number in nodes:
        ids[kind].append(number)
    return ids


def _leading_out(
    connection: Connection, link: _Link, backwards: bool, ids: Mapping[NodeKind, list[int]]
) -> Iterator[NodeKey]:
    """Return those of some nodes from which a link leads, in a direction, to a node that is none of them."""
    near, far = link.ends(backwards)
    if not ids[near.kind]:
        return
    node = _IDS[near.kind].table.alias("node").c.id
    others = ~among(connection, far.column, ids[far.kind])
    leads = link.select(near.column).where(near.column == node, others).correlate(node.table).exists()
    statement = select(node).where(among(connection, node, ids[near.kind]), leads)
    yield from (NodeKey(near.kind, number) for number in connection.execute(statement).scalars())
