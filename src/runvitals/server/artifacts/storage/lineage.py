"""Which runs used which versions of artifacts."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from runvitals.server.artifacts.storage.reading import read_version, read_versions
from runvitals.server.artifacts.storage.rows import ArtifactConflict, Version
from runvitals.server.database.database import StoredTable, add_rows, in_transaction
from runvitals.server.database.tables.artifacts import artifact_use, artifact_version
from runvitals.server.runs.storage.run_locks import lock_known_runs

_MAX_USED_AS = 128


class LineageTable(StoredTable):
    """The uses of versions by runs; which run made a version is noted there."""

    @in_transaction
    def add(self, connection: Connection, version_id: int, run_id: int, used_as: str, now_ms: int) -> Version:
        """Note that a run uses a committed version; noting it twice has no effect.

        Raises:
            UnknownArtifact, UnknownRun: there is none.
            ArtifactConflict: the version is not committed.
        """
        version = read_version(connection, version_id)
        if version.state != "committed":
            raise ArtifactConflict(f"the artifact {version_id} is {version.state}: it cannot be used")
        lock_known_runs(connection, [run_id])
        row = {"version_id": version_id, "run_id": run_id, "created_ms": now_ms}
        add_rows(connection, artifact_use, [{**row, "used_as": used_as[:_MAX_USED_AS]}])
        return version

    def users(self, version_id: int, most: int) -> list[int]:
        """The numbers of the runs that used a version, the first one first."""
        columns = artifact_use.c
        statement = (
            select(columns.run_id)
            .where(columns.version_id == version_id)
            .order_by(columns.created_ms, columns.run_id)
            .limit(most)
        )
        with self._database.read() as connection:
            return list(connection.execute(statement).scalars())

    def used_by(self, run_id: int, skip: int, limit: int) -> tuple[list[Version], int]:
        """A page of the versions that a run used, in that order, and how many there are."""
        columns = artifact_use.c
        statement = (
            select(columns.version_id)
            .join(artifact_version, artifact_version.c.id == columns.version_id)
            .where(columns.run_id == run_id, artifact_version.c.state == "committed")
        )
        page = statement.order_by(columns.created_ms, columns.version_id).offset(skip).limit(limit)
        with self._database.read() as connection:
            total = connection.execute(select(func.count()).select_from(statement.subquery())).scalar_one()
            ids = list(connection.execute(page).scalars())
            versions = read_versions(connection, ids)
            return [versions[number] for number in ids if number in versions], int(total)
