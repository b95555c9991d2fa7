"""Which files are stored, and which runs have sent them."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Select, bindparam, delete, func, select

from runvitals.server.database.database import Database, add_rows, among
from runvitals.server.database.tables.artifacts import artifact_content, artifact_entry
from runvitals.server.database.tables.buckets import team_bucket
from runvitals.server.database.tables.registry import mlflow_file
from runvitals.server.database.tables.reports import report, report_file
from runvitals.server.database.tables.runs import project, run, run_file, stored_file
from runvitals.server.runs.storage.run_locks import lock_known_runs

_DIGESTS_PER_QUERY = 500
_FILES_PER_PAGE = 10_000
_LATE_IDS = 500
"""So many of the newest ids are summed again each time: PostgreSQL may commit a file after later ones."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that a run has sent. `media_type`: from its content.

    `place`: 0: in the file store of the server; otherwise in the bucket of the team with this entity id.
    """

    sha256: str
    bytes: int
    media_type: str
    place: int = 0


STORED_FILE: Final = (
    stored_file.c.sha256,
    stored_file.c.bytes,
    stored_file.c.media_type,
    stored_file.c.place,
)
"""The columns of a `StoredFile`."""
_PLACE: Final = select(team_bucket.c.team_id).join(project, project.c.entity_id == team_bucket.c.team_id)
_PLACE_OF_PROJECT: Final = _PLACE.where(project.c.id == bindparam("number"))
_PLACE_OF_RUN: Final = _PLACE.join(run, run.c.project_id == project.c.id).where(
    run.c.id == bindparam("number")
)
_PLACE_OF_REPORT: Final = _PLACE.join(report, report.c.project_id == project.c.id).where(
    report.c.id == bindparam("number")
)
_IDS: Final = select(stored_file.c.sha256, stored_file.c.place, stored_file.c.id).where(
    stored_file.c.sha256.in_(bindparam("digests", expanding=True))
)


def ensure_file(connection: Connection, file: StoredFile, now_ms: int) -> int:
    """Return the id of a file whose content is in a file store; its row is inserted if it is missing."""
    return ensure_files(connection, {file: now_ms})[file.sha256, file.place]


def ensure_files(connection: Connection, files: Mapping[StoredFile, int]) -> dict[tuple[str, int], int]:
    """Return the ids of files by SHA-256 and place, as `ensure_file`.

    Args:
        files: each with the time now, ms UTC.
    """
    numbers = _file_ids(connection, files)
    missing = sorted(  # in order, so that two writers cannot deadlock
        (file for file in files if (file.sha256, file.place) not in numbers), key=lambda file: file.sha256
    )
    if missing:
        add_rows(connection, stored_file, [{**asdict(file), "created_ms": files[file]} for file in missing])
        numbers |= _file_ids(connection, missing)
    return numbers


def _file_ids(connection: Connection, files: Iterable[StoredFile]) -> dict[tuple[str, int], int]:
    digests = sorted({file.sha256 for file in files})
    return {
        (sha256, place): number
        for first in range(0, len(digests), _DIGESTS_PER_QUERY)
        for sha256, place, number in connection.execute(
            _IDS, {"digests": digests[first : first + _DIGESTS_PER_QUERY]}
        )
    }


class _OldFiles(NamedTuple):
    """The size of all files up to an id."""

    last_id: int
    bytes: int


_NOTHING_SUMMED = _OldFiles(0, 0)


class StoredFileTable:
    """The tables of stored files and of the runs that have them.

    Example:
        >>> metadata_store.stored_files.add(run_id, StoredFile(sha256, 190, "image/png"), now_ms)
        >>> metadata_store.stored_files.of_run(run_id, sha256).bytes
        190
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._summing = threading.Lock()
        self._summed = _NOTHING_SUMMED

    def add(self, run_id: int, file: StoredFile, now_ms: int) -> None:
        """Note that a run has sent a file, whose content is in the file store. Durable.

        Raises:
            UnknownRun: there is no such run.
        """

        def work(connection: Connection) -> None:
            lock_known_runs(connection, [run_id])
            number = ensure_file(connection, file, now_ms)
            add_rows(connection, run_file, [{"run_id": run_id, "file_id": number}])

        self._database.write(work)

    def add_many(self, run_id: int, files: Sequence[StoredFile], now_ms: int) -> None:
        """Note that a run has sent files, whose contents are in a file store. Durable.

        Raises:
            UnknownRun: there is no such run.
        """

        def work(connection: Connection) -> None:
            lock_known_runs(connection, [run_id])
            numbers = ensure_files(connection, dict.fromkeys(files, now_ms))
            own = {numbers[file.sha256, file.place] for file in files}
            add_rows(connection, run_file, [{"run_id": run_id, "file_id": number} for number in sorted(own)])

        self._database.write(work)

    def share(self, run_id: int, digests: Collection[str]) -> set[str]:
        """Those of some files that the run has, or gets because another run of its project has sent them.

        Nobody gets a file of another project by knowing its SHA-256. Durable.
        """

        def work(connection: Connection) -> set[str]:
            project = select(run.c.project_id).where(run.c.id == run_id).scalar_subquery()
            shared: dict[str, int] = {}
            ordered = sorted(digests)
            for first in range(0, len(ordered), _DIGESTS_PER_QUERY):
                statement = (
                    select(stored_file.c.sha256, stored_file.c.id)
                    .join(run_file, run_file.c.file_id == stored_file.c.id)
                    .join(run, run.c.id == run_file.c.run_id)
                    .where(
                        run.c.project_id == project,
                        stored_file.c.sha256.in_(ordered[first : first + _DIGESTS_PER_QUERY]),
                    )
                    .distinct()
                )
                shared.update(map(tuple, connection.execute(statement)))
            add_rows(
                connection, run_file, [{"run_id": run_id, "file_id": number} for number in shared.values()]
            )
            return set(shared)

        return self._database.write(work) if digests else set()

    def of_run(self, run_id: int, sha256: str) -> StoredFile | None:
        """A file that a run has sent; None if it has not."""
        statement = (
            select(*STORED_FILE)
            .join(run_file, run_file.c.file_id == stored_file.c.id)
            .where(run_file.c.run_id == run_id, stored_file.c.sha256 == sha256)
        )
        with self._database.read() as connection:
            row = connection.execute(statement).first()
        return None if row is None else StoredFile(*row)

    def place_of_run(self, run_id: int) -> int:
        """Where the files of a run are kept: see `StoredFile`."""
        return self._read_place(_PLACE_OF_RUN, run_id)

    def place_of_project(self, project_id: int) -> int:
        """Where the files of a project's artifacts are kept: see `StoredFile`."""
        return self._read_place(_PLACE_OF_PROJECT, project_id)

    def place_of_report(self, report_id: int) -> int:
        """Where the files of a report are kept: see `StoredFile`."""
        return self._read_place(_PLACE_OF_REPORT, report_id)

    def _read_place(self, statement: Select[Any], number: int) -> int:
        with self._database.read() as connection:
            return connection.execute(statement, {"number": number}).scalar() or 0

    def run_bytes(self, run_id: int) -> int:
        """The size of all files that a run has sent."""
        statement = (
            select(func.coalesce(func.sum(stored_file.c.bytes), 0))
            .join(run_file, run_file.c.file_id == stored_file.c.id)
            .where(run_file.c.run_id == run_id)
        )
        with self._database.read() as connection:
            return int(connection.execute(statement).scalar_one())

    def total_bytes(self, anew: bool = False) -> int:
        """The size of all files in the file store of the server.

        Only files that were added since the last call are summed, by this server or another one. So it may be
        too large, but not too small, after another server has removed files.

        Args:
            anew: sum all files.
        """
        with self._summing, self._database.read() as connection:
            before = _NOTHING_SUMMED if anew else self._summed
            newest = connection.execute(select(func.max(stored_file.c.id))).scalar() or 0
            if anew or newest - before.last_id > 2 * _LATE_IDS:
                last_id = max(newest - _LATE_IDS, 0)
                added = _bytes_between(connection, before.last_id, last_id)
                before = self._summed = _OldFiles(last_id, before.bytes + added)
            return before.bytes + _bytes_between(connection, before.last_id, newest)

    def sizes(self, place: int = 0) -> Iterator[dict[str, int]]:
        """The sizes of all files of a place by their SHA-256, some at a time."""
        last = 0
        while True:
            statement = select(stored_file.c.id, stored_file.c.sha256, stored_file.c.bytes)
            conditions = (stored_file.c.id > last, stored_file.c.place == place)
            page = statement.where(*conditions).order_by(stored_file.c.id).limit(_FILES_PER_PAGE)
            with self._database.read() as connection:
                rows = connection.execute(page).all()
            if not rows:
                return
            last = rows[-1].id
            yield {row.sha256: row.bytes for row in rows}

    def known(self, digests: Iterable[str], place: int = 0) -> set[str]:
        """Those of some files that are stored in a place, for any run."""
        stored_digests: set[str] = set()
        ordered = sorted(digests)
        with self._database.read() as connection:
            for first in range(0, len(ordered), _DIGESTS_PER_QUERY):
                part = ordered[first : first + _DIGESTS_PER_QUERY]
                conditions = (stored_file.c.sha256.in_(part), stored_file.c.place == place)
                statement = select(stored_file.c.sha256).where(*conditions)
                stored_digests.update(connection.execute(statement).scalars())
        return stored_digests

    def places(self) -> list[int]:
        """All places: that of the server, and the teams with buckets."""
        with self._database.read() as connection:
            teams = connection.execute(select(team_bucket.c.team_id).order_by(team_bucket.c.team_id))
            return [0, *teams.scalars()]

    def forget_unused(self, most: int, place: int = 0) -> list[str]:
        """Forget files of a place that nobody has any more, at most so many; returns their SHA-256.

        Remove the contents after it: if that does not happen, they are found as `known` by nobody.
        """

        def work(connection: Connection) -> list[str]:
            used = (
                select(table.c.file_id).where(table.c.file_id == stored_file.c.id).exists()
                for table in (run_file, artifact_content, artifact_entry, mlflow_file)
            )
            unused_files = [stored_file.c.place == place, *(~of_table for of_table in used)]
            of_reports = select(report_file.c.digest).where(report_file.c.place == place)
            unused_files.append(stored_file.c.sha256.not_in(of_reports))
            statement = select(stored_file.c.id, stored_file.c.sha256).where(*unused_files).limit(most)
            unused = dict(map(tuple, connection.execute(statement)))
            connection.execute(delete(stored_file).where(among(connection, stored_file.c.id, unused)))
            return list(unused.values())

        unused = self._database.write(work)
        if unused:
            with self._summing:
                self._summed = _NOTHING_SUMMED
        return unused


def _bytes_between(connection: Connection, after: int, last: int) -> int:
    """The size of the files with ids after one, up to another one."""
    statement = select(func.coalesce(func.sum(stored_file.c.bytes), 0))
    between = stored_file.c.id > after, stored_file.c.id <= last, stored_file.c.place == 0
    return int(connection.execute(statement.where(*between)).scalar_one())
