"""Media records of runs: what was logged under a name at a step."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, func, or_, select

from runvitals.base.json_codec import dumps, loads
from runvitals.model import media as model
from runvitals.model.logged_media import LoggedMedia, LoggedValue, MediaKey, SavedFile, ValueSelection
from runvitals.model.names import plain_text
from runvitals.server.database.database import StoredTable, add_rows, among, in_transaction
from runvitals.server.database.stored_json import stored_list
from runvitals.server.database.tables.artifacts import artifact_entry
from runvitals.server.database.tables.runs import media, run_file, stored_file, writer
from runvitals.server.database.text import check_integers
from runvitals.server.runs.storage.run_locks import lock_known_runs

if TYPE_CHECKING:
    from runvitals.server.files.storage.stored_files import StoredFile

_MAX_STEPS = 100_000
_MAX_FILES = 100_000
_NAMES_PER_QUERY = 400
_COPIED_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class StoredMedia:
    """A media record of a run.

    Args:
        writer_id, seq: the writer and the number of its record: (writer, seq) is stored once, however often
            it is sent.
        time_ms: ms UTC, by the writer's clock.
        items: as in the journal.
    """

    run_id: int
    writer_id: int
    seq: int
    time_ms: int
    step: float | None
    key: str
    kind: str
    items: list[dict[str, Any]]

    def check(self) -> None:
        """Raise ValueError for an invalid number, or items that are not valid JSON."""
        _row(self)


class MediaTable(StoredTable):
    """The table of media records.

    Example:
        >>> metadata_store.media.add([StoredMedia(run_id, writer_id, 4, now_ms, 1, "scan", "image", items)])
        >>> [key.key for key in metadata_store.media.keys(run_id)]
        ['scan']
    """

    def add(self, records: Sequence[StoredMedia]) -> None:
        """Store new records, all or none, durably; raise ValueError as `StoredMedia.check`, or UnknownRun."""
        rows = [_row(record) for record in records]
        runs = {record.run_id for record in records}
        if rows:
            self._database.write(lambda connection: _add(connection, runs, rows))

    def find_stored(self, records: Sequence[StoredMedia]) -> set[tuple[int, int]]:
        """Writer and number of those of some records that are stored already."""
        keys: set[tuple[int, int]] = set()
        with self._database.read() as connection:
            for first in range(0, len(records), _NAMES_PER_QUERY):
                part = records[first : first + _NAMES_PER_QUERY]
                same = or_(
                    *(and_(media.c.writer_id == key.writer_id, media.c.seq == key.seq) for key in part)
                )
                rows = connection.execute(select(media.c.writer_id, media.c.seq).where(same))
                keys.update(map(tuple, rows))
        return keys

    def save_file(self, run_id: int, seq: int, name: str, file: StoredFile, now_ms: int) -> bool:
        """Note a saved file of a run that no envelope names; False if the run has no writer. Durable."""
        first = select(func.min(writer.c.id)).where(writer.c.run_id == run_id)
        with self._database.read() as connection:
            writer_id = connection.execute(first).scalar()
        if writer_id is None:
            return False
        item = {"sha256": file.sha256, "bytes": file.bytes, "type": file.media_type}
        self.add([StoredMedia(run_id, writer_id, seq, now_ms, None, name, model.FILE, [item])])
        return True

    def remove_files(self, run_id: int, name: str) -> None:
        """Forget a saved file of a run, or those in a folder."""
        inside = (media.c.key >= f"{name}/", media.c.key < f"{name}0")
        is_chosen = or_(media.c.key == name, and_(*inside))
        statement = delete(media).where(media.c.run_id == run_id, media.c.kind == model.FILE, is_chosen)
        self._database.write(lambda connection: connection.execute(statement))

    def remove_named_files(self, run_id: int, names: Collection[str]) -> list[str]:
        """Forget some saved files of a run, all of which it must have; returns the names that it lacks."""

        def remove(connection: Connection) -> list[str]:
            of_run = (media.c.run_id == run_id, media.c.kind == model.FILE)
            conditions = (*of_run, media.c.key.in_([plain_text(name) for name in names]))
            known_keys = set(connection.execute(select(media.c.key).where(*conditions).distinct()).scalars())
            missing = [name for name in names if plain_text(name) not in known_keys]
            if not missing:
                connection.execute(delete(media).where(*conditions))
            return missing

        return self._database.write(remove)

    def times(self, run_id: int) -> set[tuple[int, float | None]]:
        """Time in ms UTC and step of the records of a run."""
        of_run = select(media.c.time_ms, media.c.step).where(media.c.run_id == run_id)
        with self._database.read() as connection:
            return {(row.time_ms, row.step) for row in connection.execute(of_run)}

    def delete_after(self, run_id: int, step: float, before_ms: int | None = None) -> None:
        """Delete the records of steps after one; those without a step stay.

        Args:
            before_ms: only records from before this time.
        """
        later = delete(media).where(media.c.run_id == run_id, media.c.step > step)
        if before_ms is not None:
            later = later.where(media.c.time_ms < before_ms)
        self._database.write(lambda connection: connection.execute(later))

    @in_transaction
    def copy_until(
        self, connection: Connection, source_id: int, run_id: int, writer_id: int, step: float
    ) -> None:
        """Give a run the media that another one has logged up to a step, with their files. Durable.

        Those that it has already are not added again.

        Args:
            writer_id: the writer of the run whose records they become.

        Raises:
            UnknownRun: there is no such run.
        """
        logged = (media.c.run_id == source_id, media.c.step <= step, media.c.kind.not_in(model.NOT_LOGGED))
        lock_known_runs(connection, {run_id})
        last = 0
        while True:
            part = select(media).where(*logged, media.c.id > last).order_by(media.c.id)
            rows = [row._asdict() for row in connection.execute(part.limit(_COPIED_AT_ONCE))]
            if not rows:
                return
            last = rows[-1]["id"]
            copies = [{**row, "run_id": run_id, "writer_id": writer_id, "seq": row["id"]} for row in rows]
            for copy in copies:
                del copy["id"]
            add_rows(connection, media, copies)
            _share_files(connection, source_id, run_id, rows)

    def keys(self, run_id: int) -> list[MediaKey]:
        """Return the names under which media were logged, in order of first use.

        Those of saved files and artifacts are left out.
        """
        statement = (
            select(
                media.c.key,
                func.max(media.c.kind),
                func.count(),
                func.min(media.c.step),
                func.max(media.c.step),
                func.max(media.c.time_ms),
            )
            .where(media.c.run_id == run_id, media.c.kind.not_in(model.WITHOUT_PANEL))
            .group_by(media.c.key)
            .order_by(func.min(media.c.id))
        )
        with self._database.read() as connection:
            return [MediaKey(*row) for row in connection.execute(statement)]

    def page(
        self, run_id: int, key: str, first: float | None, last: float | None, skip: int, limit: int
    ) -> tuple[list[LoggedMedia], int]:
        """Records of a key by step, and how many there are between two steps, both included."""
        conditions = _of_key(run_id, key, first, last)
        statement = (
            select(media, writer.c.rank, writer.c.host)
            .join(writer, writer.c.id == media.c.writer_id)
            .where(*conditions)
            .order_by(media.c.step.nulls_first(), media.c.time_ms, media.c.id)
            .offset(skip)
            .limit(limit)
        )
        with self._database.read() as connection:
            total = connection.execute(select(func.count()).select_from(media).where(*conditions))
            records = [_to_media(row) for row in connection.execute(statement)]
            _fill_in_files(connection, run_id, records)
            return records, int(total.scalar_one())

    def steps(self, run_id: int, key: str) -> list[float]:
        """Return the steps at which something was logged under a name, ascending."""
        statement = (
            select(media.c.step)
            .where(*_of_key(run_id, key, None, None), media.c.step.is_not(None))
            .distinct()
            .order_by(media.c.step)
            .limit(_MAX_STEPS)
        )
        with self._database.read() as connection:
            return list(connection.execute(statement).scalars())

    def values(self, run_id: int, selection: ValueSelection, limit: int) -> list[LoggedValue]:
        """Return the texts, lists and objects that a run logged, by step; the newest `limit` of them."""
        conditions = [media.c.run_id == run_id, media.c.kind == model.VALUE, media.c.step.is_not(None)]
        if selection.first_step is not None:
            conditions.append(media.c.step >= selection.first_step)
        if selection.last_step is not None:
            conditions.append(media.c.step <= selection.last_step)
        if selection.keys:
            conditions.append(media.c.key.in_([plain_text(key) for key in selection.keys]))
        statement = (
            select(writer.c.host, writer.c.rank, media.c.key, media.c.step, media.c.time_ms, media.c.body)
            .join(writer, writer.c.id == media.c.writer_id)
            .where(*conditions)
            .order_by(media.c.step.desc(), media.c.time_ms.desc(), media.c.id.desc())
            .limit(limit)
        )
        with self._database.read() as connection:
            newest_first = [
                LoggedValue(row.host, row.rank, row.key, row.step, row.time_ms, _items(row)[0]["value"])
                for row in connection.execute(statement)
            ]
            return newest_first[::-1]

    def value_extents(self, run_ids: Sequence[int]) -> dict[int, tuple[int, float]]:
        """Return how many rows of runs have texts, lists or objects, and the last step of these."""
        statement = select(
            media.c.run_id, func.count(func.distinct(media.c.time_ms)), func.max(media.c.step)
        ).where(media.c.kind == model.VALUE, media.c.step.is_not(None))
        with self._database.read() as connection:
            of_runs = statement.where(among(connection, media.c.run_id, run_ids)).group_by(media.c.run_id)
            return {run_id: (rows, last) for run_id, rows, last in connection.execute(of_runs)}

    def value_names(self, run_id: int) -> list[str]:
        """Return the names under which texts, lists and objects were logged, sorted."""
        conditions = (media.c.run_id == run_id, media.c.kind == model.VALUE)
        statement = select(media.c.key).where(*conditions).distinct().order_by(media.c.key)
        with self._database.read() as connection:
            return list(connection.execute(statement).scalars())

    def files(self, run_id: int) -> list[SavedFile]:
        """Return the saved files, by name, each as it was last saved."""
        newest = (
            select(media.c.key, func.max(media.c.time_ms).label("time_ms"))
            .where(media.c.run_id == run_id, media.c.kind == model.FILE)
            .group_by(media.c.key)
            .subquery()
        )
        statement = (
            select(media)
            .join(newest, (media.c.key == newest.c.key) & (media.c.time_ms == newest.c.time_ms))
            .where(media.c.run_id == run_id, media.c.kind == model.FILE)
            .order_by(media.c.key, media.c.id)
            .limit(_MAX_FILES)
        )
        with self._database.read() as connection:
            rows = {row.key: row for row in connection.execute(statement)}
        files = []
        for key, row in rows.items():
            item = next(iter(model.files_of(_items(row))), None)
            if item is not None:
                files.append(SavedFile(key, item["bytes"], item["type"], item["sha256"], row.time_ms))
        return files

    def is_of_artifact(self, run_id: int, sha256: str) -> bool:
        """Return whether an artifact has a file that no other record of a run names."""
        of_artifact = (
            select(artifact_entry.c.path)
            .join(stored_file, stored_file.c.id == artifact_entry.c.file_id)
            .where(stored_file.c.sha256 == sha256)
        )
        media_ids = select(media.c.id).where(
            media.c.run_id == run_id, media.c.kind != model.ARTIFACT, media.c.body.contains(sha256)
        )
        with self._database.read() as connection:
            if connection.execute(of_artifact.limit(1)).first() is None:
                return False
            return connection.execute(media_ids.limit(1)).first() is None


def _of_key(run_id: int, key: str, first: float | None, last: float | None) -> list[ColumnElement[bool]]:
    hidden = (model.ARTIFACT, model.VALUE)
    conditions = [media.c.run_id == run_id, media.c.key == plain_text(key), media.c.kind.not_in(hidden)]
    if first is not None:
        conditions.append(media.c.step >= first)
    if last is not None:
        conditions.append(media.c.step <= last)
    return conditions


def _to_media(row: Row[Any]) -> LoggedMedia:
    return LoggedMedia(row.key, row.kind, row.step, row.time_ms, row.rank, row.host, _items(row))


def _items(row: Any) -> list[dict[str, Any]]:
    return stored_list(row.body, f"the media {row.key!r}")


def _fill_in_files(connection: Connection, run_id: int, records: Sequence[LoggedMedia]) -> None:
    """Give items that name a saved file its content: wandb's clients name files that they upload later."""
    items = [item for record in records for item in record.items if "file" in item and "sha256" not in item]
    names = sorted({plain_text(str(item["file"])) for item in items})
    items_by_path: dict[str, list[dict[str, Any]]] = {}
    for first in range(0, len(names), _NAMES_PER_QUERY):
        part = names[first : first + _NAMES_PER_QUERY]
        saved = select(media.c.key, media.c.body).where(
            media.c.run_id == run_id, media.c.kind == model.FILE, media.c.key.in_(part)
        )
        for row in connection.execute(saved.order_by(media.c.time_ms, media.c.id)):
            items_by_path[row.key] = _items(row)
    for item in items:
        contents = items_by_path.get(plain_text(str(item["file"])), [])
        same_kind = [content for content in contents if content.get("kind") == item.get("kind")]
        # A converted table is kept beside the file as it was uploaded.
        for content in (same_kind or contents)[:1]:
            item.update({name: value for name, value in content.items() if name not in item})


def _share_files(
    connection: Connection, source_id: int, run_id: int, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Give a run the files of records of another one that has sent them."""
    digests = {item.get("sha256") for row in rows for item in loads(row["body"].encode("ascii"))}
    valid_digests = sorted(digest for digest in digests if isinstance(digest, str))
    for first in range(0, len(valid_digests), _NAMES_PER_QUERY):
        theirs = (
            select(run_file.c.file_id)
            .join(stored_file, stored_file.c.id == run_file.c.file_id)
            .where(
                run_file.c.run_id == source_id,
                stored_file.c.sha256.in_(valid_digests[first : first + _NAMES_PER_QUERY]),
            )
        )
        files = [
            {"run_id": run_id, "file_id": number} for number in connection.execute(theirs).scalars().all()
        ]
        if files:
            add_rows(connection, run_file, files)


def _add(connection: Connection, runs: set[int], rows: list[dict[str, Any]]) -> None:
    lock_known_runs(connection, runs)
    add_rows(connection, media, rows)


def _row(stored_media: StoredMedia) -> dict[str, Any]:
    check_integers(f"media {stored_media.key!r}", time_ms=stored_media.time_ms, seq=stored_media.seq)
    try:
        items = dumps(stored_media.items)
    except (TypeError, ValueError) as error:
        raise ValueError(f"media {stored_media.key!r} are not valid JSON: {error}") from None
    return {
        "run_id": stored_media.run_id,
        "writer_id": stored_media.writer_id,
        "seq": stored_media.seq,
        "time_ms": stored_media.time_ms,
        "step": stored_media.step,
        "key": plain_text(stored_media.key),
        "kind": plain_text(stored_media.kind),
        "body": items.decode("ascii"),
    }
