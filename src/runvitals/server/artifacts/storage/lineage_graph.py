"""What runs used and made, as a graph: the neighbours of runs and versions, and what is shown of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Select, select

from runvitals.server.artifacts.lineage_walk import NodeKey
from runvitals.server.artifacts.storage.reading import read_memberships, read_versions
from runvitals.server.artifacts.storage.rows import CollectionVersion, Version
from runvitals.server.database.database import Database, among
from runvitals.server.database.tables.accounts import entity
from runvitals.server.database.tables.artifacts import artifact_membership, artifact_use, artifact_version
from runvitals.server.database.tables.runs import project, run

_EXISTING: Final = ("committed", "deleted")
"""A draft is nobody's yet; of a deleted version it stays known who made and used it."""
_VERSION: Final = artifact_version.c
_USE: Final = artifact_use.c


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


@dataclass(frozen=True, slots=True)
class LineageEnds:
    """The nodes that something comes before, or after, besides those of the graph."""

    before: frozenset[NodeKey]
    after: frozenset[NodeKey]


class LineageGraphTable:
    """The neighbours of runs and versions. The newest ones come first where only some are returned.

    Example:
        >>> metadata_store.artifacts.lineage_graph.before([NodeKey("run", 1)], 100)
        [NodeKey('version', 7)]
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def before(self, nodes: Collection[NodeKey], limit: int) -> list[NodeKey]:
        """Return what some nodes were made from: of a version its run, of a run what it used."""
        runs, versions = _ids(nodes)
        with self._database.read() as connection:
            used = (
                select(_USE.version_id)
                .join(artifact_version, _VERSION.id == _USE.version_id)
                .where(among(connection, _USE.run_id, runs), _VERSION.state.in_(_EXISTING))
                .distinct()
                .order_by(_USE.version_id.desc())
            )
            makers = (
                select(_VERSION.run_id)
                .where(among(connection, _VERSION.id, versions), _VERSION.run_id.is_not(None))
                .distinct()
                .order_by(_VERSION.run_id.desc())
            )
            return _nodes(connection, makers, used, limit)

    def after(self, nodes: Collection[NodeKey], limit: int) -> list[NodeKey]:
        """Return what was made from some nodes: of a version the runs that used it, of a run its versions."""
        runs, versions = _ids(nodes)
        with self._database.read() as connection:
            made = (
                select(_VERSION.id)
                .where(among(connection, _VERSION.run_id, runs), _VERSION.state.in_(_EXISTING))
                .order_by(_VERSION.id.desc())
            )
            users = (
                select(_USE.run_id)
                .where(among(connection, _USE.version_id, versions))
                .distinct()
                .order_by(_USE.run_id.desc())
            )
            return _nodes(connection, users, made, limit)

    def edges(self, nodes: Collection[NodeKey], limit: int) -> list[tuple[NodeKey, NodeKey]]:
        """Return which of some nodes were made from which, at most so many of each kind."""
        runs, versions = _ids(nodes)
        with self._database.read() as connection:
            made = (
                select(_VERSION.run_id, _VERSION.id)
                .where(among(connection, _VERSION.id, versions), among(connection, _VERSION.run_id, runs))
                .order_by(_VERSION.id)
                .limit(limit)
            )
            used = (
                select(_USE.version_id, _USE.run_id)
                .where(among(connection, _USE.run_id, runs), among(connection, _USE.version_id, versions))
                .order_by(_USE.run_id, _USE.version_id)
                .limit(limit)
            )
            return [
                *((NodeKey("run", a), NodeKey("version", b)) for a, b in connection.execute(made)),
                *((NodeKey("version", a), NodeKey("run", b)) for a, b in connection.execute(used)),
            ]

    def ends(self, nodes: Collection[NodeKey]) -> LineageEnds:
        """Return the nodes that have neighbours besides each other."""
        runs, versions = _ids(nodes)
        with self._database.read() as connection:
            run_here, version_here = (
                among(connection, run.c.id, runs),
                among(connection, _VERSION.id, versions),
            )
            other_use = select(_USE.run_id).where(
                _USE.version_id == _VERSION.id, ~among(connection, _USE.run_id, runs)
            )
            other_input = select(_USE.run_id).where(
                _USE.run_id == run.c.id, ~among(connection, _USE.version_id, versions)
            )
            other_output = select(_VERSION.id).where(
                _VERSION.run_id == run.c.id,
                _VERSION.state.in_(_EXISTING),
                ~among(connection, _VERSION.id, versions),
            )
            other_maker = _VERSION.run_id.is_not(None) & ~among(connection, _VERSION.run_id, runs)
            before = _nodes(
                connection,
                select(run.c.id).where(run_here, other_input.exists()),
                select(_VERSION.id).where(version_here, other_maker),
            )
            after = _nodes(
                connection,
                select(run.c.id).where(run_here, other_output.exists()),
                select(_VERSION.id).where(version_here, other_use.exists()),
            )
            return LineageEnds(frozenset(before), frozenset(after))

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


def _ids(nodes: Iterable[NodeKey]) -> tuple[list[int], list[int]]:
    """Return the numbers of runs and those of versions."""
    runs: list[int] = []
    versions: list[int] = []
    for kind, number in nodes:
        (runs if kind == "run" else versions).append(number)
    return runs, versions


def _nodes(
    connection: Connection, runs: Select[Any], versions: Select[Any], limit: int | None = None
) -> list[NodeKey]:
    return [
        *(NodeKey("run", number) for number in connection.execute(runs.limit(limit)).scalars()),
        *(NodeKey("version", number) for number in connection.execute(versions.limit(limit)).scalars()),
    ]
