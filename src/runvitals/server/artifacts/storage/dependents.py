"""What depends on versions: the runs that used them, what these made, and where they are linked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from sqlalchemy import ColumnElement, Connection, Select, func, select

from runvitals.server.artifacts.storage.reading import read_memberships
from runvitals.server.artifacts.storage.rows import MAX_LINKS, CollectionVersion, LinkedVersions
from runvitals.server.database.database import StoredTable
from runvitals.server.database.tables.accounts import entity
from runvitals.server.database.tables.artifacts import (
    artifact_collection,
    artifact_membership,
    artifact_use,
    artifact_version,
)
from runvitals.server.database.tables.runs import project, run

T = TypeVar("T")
MAX_SHOWN: Final = 100
"""The most runs, and the most versions, that are shown."""


@dataclass(frozen=True, slots=True)
class Dependents:
    """What depends on some versions.

    Args:
        runs: the newest that used one, by number; `run_count`: how many there are.
        versions: the newest that these runs made, by number; `version_count`: how many there are.
        links: where they are linked.
    """

    runs: tuple[int, ...]
    run_count: int
    versions: tuple[int, ...]
    version_count: int
    links: tuple[CollectionVersion, ...]


class DependentTable(StoredTable):
    """Reads what depends on versions.

    Example:
        >>> metadata_store.artifacts.dependents.of_version(7).run_count
        3
    """

    def of_version(self, version_id: int) -> Dependents:
        """Return what depends on a version."""
        return self._read(artifact_version.c.id == version_id)

    def of_collection(self, collection_id: int) -> Dependents:
        """Return what depends on any version that was logged to a collection."""
        return self._read(artifact_version.c.collection_id == collection_id)

    def of_run(self, run_id: int) -> Dependents:
        """Return what depends on any version that a run made."""
        return self._read(artifact_version.c.run_id == run_id)

    def of_project(self, project_id: int) -> Dependents:
        """Return what in other projects depends on any version of a project."""
        return self._read(
            _of_projects(select(project.c.id).where(project.c.id == project_id)),
            (run.c.project_id != project_id,),
            (artifact_collection.c.project_id != project_id,),
        )

    def delete_project(self, project_id: int, delete: Callable[[], T]) -> T:
        """Delete a project, unless another one has a version of it.

        Args:
            delete: moves it to the trash, from where nothing can be linked.

        Raises:
            LinkedVersions: a version is linked in another project; then nothing is deleted.
        """
        projects = select(project.c.id).where(project.c.id == project_id)
        return self._delete(delete, projects, projects)

    def delete_team(self, team_id: int, delete: Callable[[], T]) -> T:
        """Delete a team, unless another one has a version of it; as `delete_project`."""
        owner = select(entity.c.id).where(entity.c.id == team_id)
        return self._delete(delete, owner, select(project.c.id).where(project.c.entity_id == team_id))

    def _delete(self, delete: Callable[[], T], locked: Select[tuple[int]], projects: Select[tuple[int]]) -> T:
        def work() -> T:
            with self._database.read() as connection:
                # Links that are made from now on wait for this, and those made before are seen.
                connection.execute(locked.with_for_update())
                check_unlinked(
                    connection, _of_projects(projects), artifact_collection.c.project_id.not_in(projects)
                )
            return delete()

        return self._database.in_one_transaction(work)

    def _read(
        self,
        which: ColumnElement[bool],
        of_users: Sequence[ColumnElement[bool]] = (),
        of_links: Sequence[ColumnElement[bool]] = (),
    ) -> Dependents:
        """Return what depends on some versions: only runs and collections that fulfil conditions."""
        version, use = artifact_version.c, artifact_use.c
        theirs = select(version.id).where(which, version.state == "committed")
        users = (
            select(use.run_id)
            .join(run, run.c.id == use.run_id)
            .where(use.version_id.in_(theirs), *of_users)
            .distinct()
        )
        outputs = select(version.id).where(
            version.run_id.in_(users), version.state == "committed", version.id.not_in(theirs)
        )
        with self._database.read() as connection:
            runs, run_count = _newest(connection, users, use.run_id)
            versions, version_count = _newest(connection, outputs, version.id)
            links = tuple(read_links(connection, which, *of_links))
            return Dependents(runs, run_count, versions, version_count, links)


def _of_projects(projects: Select[tuple[int]]) -> ColumnElement[bool]:
    return artifact_version.c.collection_id.in_(
        select(artifact_collection.c.id).where(artifact_collection.c.project_id.in_(projects))
    )


def lock_versions(connection: Connection, which: ColumnElement[bool]) -> None:
    """Let nobody link some versions until the transaction ends, by a condition on `artifact_version`."""
    connection.execute(select(artifact_version.c.id).where(which).with_for_update()).all()


def check_unlinked(connection: Connection, *which: ColumnElement[bool]) -> None:
    """Check that some versions may be deleted.

    Args:
        which: conditions on `artifact_version`, and on the collections to which they may not be linked.

    Raises:
        LinkedVersions: a collection has one to which it was linked.
    """
    links = read_links(connection, *which)
    if links:
        raise LinkedVersions(links)


def read_links(connection: Connection, *which: ColumnElement[bool]) -> list[CollectionVersion]:
    """Return where versions are linked, the oldest links first; not where they were registered.

    Args:
        which: conditions on `artifact_version` and on the collection to which it is linked.
    """
    statement = (
        select(artifact_membership)
        .join(artifact_collection, artifact_collection.c.id == artifact_membership.c.collection_id)
        .join(artifact_version, artifact_version.c.id == artifact_membership.c.version_id)
        .where(
            artifact_collection.c.kind == "portfolio",
            artifact_collection.c.id != artifact_version.c.collection_id,
            *which,
        )
        .order_by(artifact_membership.c.id)
    )
    return read_memberships(connection, statement.limit(MAX_LINKS))


def _newest(
    connection: Connection, numbers: Select[Any], column: ColumnElement[int]
) -> tuple[tuple[int, ...], int]:
    total = connection.execute(select(func.count()).select_from(numbers.subquery())).scalar_one()
    return tuple(connection.execute(numbers.order_by(column.desc()).limit(MAX_SHOWN)).scalars()), int(total)
