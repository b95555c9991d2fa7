"""Files that MLflow's clients put under paths of projects."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, and_, delete, or_, select

from runvitals.server.database.database import StoredTable, in_transaction, put_rows
from runvitals.server.database.tables.registry import mlflow_file
from runvitals.server.database.tables.runs import stored_file
from runvitals.server.files.storage.stored_files import STORED_FILE, StoredFile, ensure_file

MAX_LISTED = 100_000


class PathTaken(ValueError):
    """A path cannot be a file beside another one, which would then be a file and a folder."""

    def __init__(self, other: str) -> None:
        super().__init__(f"there is the file {other!r} already: a path is a file or a folder")


@dataclass(frozen=True, slots=True)
class PathEntry:
    """A file or folder. `path`: from the folder that was listed. `bytes`: None for a folder."""

    path: str
    bytes: int | None


class MlflowFileTable(StoredTable):
    """The table of files by project and path.

    Example:
        >>> file = StoredFile(sha256, 4, "text/plain")
        >>> metadata_store.mlflow_files.put(3, "r1/artifacts/a.txt", file, run_id, now_ms)
        >>> metadata_store.mlflow_files.entries(3, "r1/artifacts")
        [PathEntry(path='a.txt', bytes=4)]
    """

    @in_transaction
    def put(
        self,
        connection: Connection,
        project_id: int,
        path: str,
        file: StoredFile,
        run_id: int | None,
        now_ms: int,
    ) -> None:
        """Note that a path has a content, which is in the file store. Durable.

        Args:
            run_id: the run whose file it is.

        Raises:
            PathTaken: the path is a folder, or leads through a file.
        """
        folders = [path[:position] for position, letter in enumerate(path) if letter == "/"]
        conflicts = or_(mlflow_file.c.path.in_(folders), and_(*_within(f"{path}/")))
        statement = (
            select(mlflow_file.c.path).where(mlflow_file.c.project_id == project_id, conflicts).limit(1)
        )
        conflict = connection.execute(statement).scalar()
        if conflict is not None:
            raise PathTaken(conflict)
        number = ensure_file(connection, file, now_ms)
        row = {"project_id": project_id, "path": path, "run_id": run_id, "file_id": number}
        put_rows(connection, mlflow_file, [{**row, "changed_ms": now_ms}])

    def get(self, project_id: int, path: str) -> StoredFile | None:
        """The file at a path."""
        statement = (
            select(*STORED_FILE)
            .join(mlflow_file, mlflow_file.c.file_id == stored_file.c.id)
            .where(mlflow_file.c.project_id == project_id, mlflow_file.c.path == path)
        )
        with self._database.read() as connection:
            row = connection.execute(statement).first()
        return None if row is None else StoredFile(*row)

    def entries(self, project_id: int, folder: str) -> list[PathEntry]:
        """The files and folders directly in a folder, by path."""
        prefix = f"{folder}/" if folder else ""
        statement = (
            select(mlflow_file.c.path, stored_file.c.bytes)
            .join(stored_file, stored_file.c.id == mlflow_file.c.file_id)
            .where(mlflow_file.c.project_id == project_id, *_within(prefix))
            .order_by(mlflow_file.c.path)
            .limit(MAX_LISTED)
        )
        entries: dict[str, int | None] = {}
        with self._database.read() as connection:
            for path, size in connection.execute(statement):
                first, slash, _ = path[len(prefix) :].partition("/")
                entries[first] = None if slash else size
        return [PathEntry(path, size) for path, size in sorted(entries.items())]

    def below(self, project_id: int, path: str) -> dict[str, StoredFile]:
        """All files in a folder, by their path in it; of a file, the file itself by its name."""
        columns = mlflow_file.c
        statement = (
            select(columns.path, stored_file.c.sha256, stored_file.c.bytes, stored_file.c.media_type)
            .join(stored_file, stored_file.c.id == columns.file_id)
            .where(columns.project_id == project_id, or_(columns.path == path, and_(*_within(f"{path}/"))))
            .order_by(columns.path)
            .limit(MAX_LISTED)
        )
        with self._database.read() as connection:
            return {
                row.path[len(path) + 1 :] or path.rpartition("/")[2]: StoredFile(*row[1:])
                for row in connection.execute(statement)
            }

    def remove(self, project_id: int, path: str) -> int:
        """Remove the file at a path, or all in a folder; returns how many."""
        within = or_(mlflow_file.c.path == path, and_(*_within(f"{path}/")))
        statement = delete(mlflow_file).where(mlflow_file.c.project_id == project_id, within)
        return self._database.write(lambda connection: connection.execute(statement).rowcount)


def _within(prefix: str) -> list[ColumnElement[bool]]:
    """The paths that begin with a prefix that ends in `/`: `0` is the character after it."""
    if not prefix:
        return []
    return [mlflow_file.c.path >= prefix, mlflow_file.c.path < f"{prefix[:-1]}0"]
