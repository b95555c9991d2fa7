"""The table of runs: find, list, count, rename, tag, move to the trash."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, func, select, update

from runvitals.model.completion import FieldChoice
from runvitals.model.errors import AmbiguousName
from runvitals.model.filter import Filter
from runvitals.model.names import plain_text
from runvitals.model.run_groups import RunGroup
from runvitals.model.run_sort import RunSort
from runvitals.model.search_text import tags_of
from runvitals.server.audit.storage.audit import SYSTEM, record
from runvitals.server.database.database import Database, StoredTable, among, in_transaction, rows_named
from runvitals.server.database.section_documents import SectionDocument, SectionKey, read_documents
from runvitals.server.database.tables.runs import project, run, run_tag
from runvitals.server.database.text import checked_name
from runvitals.server.runs.storage import run_fields, run_groups, run_listing, sections
from runvitals.server.runs.storage.filter_sql import plan
from runvitals.server.runs.storage.pending_summaries import PendingSummaries
from runvitals.server.runs.storage.run_columns import AUTHOR
from runvitals.server.runs.storage.run_locks import lock_known_runs
from runvitals.server.runs.storage.run_places import RunPlace, find_sent, read_places
from runvitals.server.runs.storage.run_rows import RunPage, RunRow, read_rows
from runvitals.server.runs.storage.run_states import state_at
from runvitals.server.runs.storage.run_tombstones import remember_purged
from runvitals.server.runs.storage.run_trash import set_in_trash
from runvitals.server.runs.storage.sections import SectionUpdate

MAX_PAGE = 1000
COUNTED_BY = ("project", "state", "tag", "author")


class RunTable(StoredTable):
    """The table of runs.

    Example:
        >>> page = metadata_store.runs.page(Filter(project="digits"), RunSort("summary.loss",
        descending=False))
        >>> [run.name for run in page.runs]
        ['brave-otter-2', 'brave-otter-1']
    """

    def __init__(self, database: Database, pending_summaries: PendingSummaries) -> None:
        super().__init__(database)
        self._pending_summaries = pending_summaries

    def _read_fields(self) -> AbstractContextManager[Connection]:
        """Return a connection that sees the summaries of all rows that were stored."""
        self._pending_summaries.flush_for_readers()
        return self._database.read()

    def find(self, uid: str, now_ms: int) -> RunRow | None:
        """Return a run by its run id, including runs in the trash; None if there is none.

        Raises:
            AmbiguousName: several teams or users have one.
        """
        with self._database.read() as connection:
            numbers = connection.execute(select(run.c.id).where(run.c.uid == plain_text(uid))).scalars().all()
            if len(numbers) > 1:
                raise AmbiguousName(f"several teams or users have a run {uid!r}; name one of them")
            rows = read_rows(connection, numbers, now_ms)
        return rows[0] if rows else None

    def named(self, uids: Sequence[str], run_filter: Filter, now_ms: int) -> list[RunRow]:
        """Return those of the runs with these run ids that match a filter, in the order of the ids.

        Raises:
            AmbiguousName: several teams or users have a run with one of the ids, and the filter names none.
        """
        with self._read_fields() as connection:
            numbers = [number for *_, number in rows_named(connection, run.c.uid, map(plain_text, uids))]
            conditions = plan(connection, run_filter, now_ms, needed=None).where
            matching = select(run.c.id).where(among(connection, run.c.id, numbers), *conditions)
            rows = read_rows(connection, list(connection.execute(matching).scalars()), now_ms)
        rows_by_uid = {row.uid: row for row in rows}
        if len(rows_by_uid) < len(rows):
            raise AmbiguousName("several teams or users have a run with one of these ids; name one of them")
        return [rows_by_uid[uid] for uid in dict.fromkeys(uids) if uid in rows_by_uid]

    def get(self, run_ids: Sequence[int], now_ms: int) -> dict[int, RunRow]:
        """Return runs by integer id; unknown ids are left out."""
        with self._database.read() as connection:
            return {row.id: row for row in read_rows(connection, run_ids, now_ms)}

    def place(self, run_id: int) -> RunPlace | None:
        """Return the project and owner of a run, by its integer id; None if there is none."""
        with self._database.read() as connection:
            run_places = read_places(connection, run.c.id == run_id)
        return run_places[0] if run_places else None

    def places(self, uid: str) -> list[RunPlace]:
        """Return the projects and owners of the runs with this run id, also of those in the trash."""
        with self._database.read() as connection:
            return read_places(connection, run.c.uid == plain_text(uid))

    def sent_by(
        self, uid: str, *, user_id: int | None = None, service_account_id: int | None = None
    ) -> set[int]:
        """Return the integer ids of the runs with this run id that a user or service account has sent to."""
        with self._database.read() as connection:
            return find_sent(connection, uid, user_id, service_account_id)

    def page(
        self,
        run_filter: Filter,
        sort: RunSort,
        now_ms: int,
        limit: int = 100,
        after: str | None = None,
        skip: int = 0,
    ) -> RunPage:
        """Return a page of the runs matching a filter, in order. Takes 1 to 50 ms with 100,000 runs.

        Pages are stable: new runs do not shift them, and states are those at the time of the first page.

        Args:
            limit: 1 to 1000.
            after: `next` of the previous page; None for the first page.
            skip: leave out this many runs first. The database counts them, which takes up to 50 ms more.

        Raises:
            ValueError: invalid `limit` or `after`.
        """
        if not 1 <= limit <= MAX_PAGE:
            raise ValueError(f"invalid limit {limit}; expected 1 to {MAX_PAGE}")
        with self._read_fields() as connection:
            return run_listing.page(connection, run_filter, sort, limit, after, now_ms, skip)

    def count(self, run_filter: Filter, now_ms: int, up_to: int | None = None) -> int:
        """Return the number of runs matching a filter. Counting stops at `up_to`, which is faster."""
        with self._read_fields() as connection:
            return run_listing.count(connection, run_filter, now_ms, up_to)

    def ids(self, run_filter: Filter, now_ms: int) -> list[int]:
        """Return the ids of all runs matching a filter, ascending."""
        with self._read_fields() as connection:
            conditions = plan(connection, run_filter, now_ms, needed=None).where
            return list(connection.execute(select(run.c.id).where(*conditions).order_by(run.c.id)).scalars())

    def matching(self, run_ids: Collection[int], run_filter: Filter, now_ms: int) -> set[int]:
        """Return those of the runs with these ids that match a filter."""
        with self._database.read() as connection:
            conditions = plan(connection, run_filter, now_ms, needed=None).where
            matching = select(run.c.id).where(among(connection, run.c.id, run_ids), *conditions)
            return set(connection.execute(matching).scalars())

    def counts(self, run_filter: Filter, by: str, now_ms: int) -> dict[str, int]:
        """Return how many runs that match a filter are in each project or state, or have each tag or author.

        The largest count is first. Runs without an author are counted under "".

        Raises:
            ValueError: `by` is not in `COUNTED_BY`.
        """
        columns: dict[str, ColumnElement[str]] = {
            "project": project.c.name,
            "state": state_at(now_ms),
            "tag": run_tag.c.tag,
            "author": AUTHOR,
        }
        if by not in columns:
            raise ValueError(f"cannot count runs by {by!r}; expected one of {', '.join(COUNTED_BY)}")
        counted = columns[by].label("what")
        with self._read_fields() as connection:
            conditions = plan(connection, run_filter, now_ms, needed=None).where
            statement = select(counted, func.count()).where(*conditions).group_by(counted)
            if by == "tag":
                statement = statement.join(run_tag, run_tag.c.run_id == run.c.id)
            if by == "project":
                statement = statement.join(project, project.c.id == run.c.project_id)
            counts = dict(connection.execute(statement).all())
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def fields(self, run_filter: Filter, now_ms: int) -> list[str]:
        """Return the fields of the newest 1,000 matching runs: what their table can show and sort by."""
        with self._read_fields() as connection:
            return run_fields.names_of(connection, run_filter, now_ms)

    def field_values(self, run_ids: Sequence[int], names: Sequence[str]) -> dict[int, dict[str, str | float]]:
        """Return the values of fields of runs, by run and name; missing ones are left out. Texts are cut."""
        with self._read_fields() as connection:
            return run_fields.values_of(connection, run_ids, names)

    def choices(self, run_filter: Filter, now_ms: int) -> list[FieldChoice]:
        """Return what a filter can name in the newest 1,000 runs that match one, with frequent values."""
        with self._read_fields() as connection:
            return run_fields.choices_of(connection, run_filter, now_ms)

    def groups(
        self, run_filter: Filter, by: Sequence[str], columns: Sequence[str], now_ms: int
    ) -> list[RunGroup]:
        """Return the groups of the runs that match a filter, unordered.

        Args:
            by: fields, and names in `run_groups.GROUPED_COLUMNS`; none for one group of all.
            columns: fields whose numbers are summarised.

        Raises:
            TooManyGroups: there are too many.
        """
        with self._read_fields() as connection:
            return run_groups.groups_of(connection, run_filter, by, columns, now_ms)

    @in_transaction
    def set_about(
        self,
        connection: Connection,
        run_id: int,
        values: dict[str, Any],
        now_ms: int,
        at_ms: int | None = None,
    ) -> bool:
        """Change a run's `run` section on behalf of a user: name, notes, group, job_type, project, tags.

        Overrides what journals have recorded so far, including records from before `now_ms` that arrive
        later.

        Args:
            at_ms: when it was changed, if that was before: what was set later stays.

        Returns:
            whether something was changed.

        Raises:
            ValueError: a value that cannot be stored.
            UnknownRun: there is no run with this id.
        """
        checked = SectionUpdate(run_id, "run", values, now_ms).to_stored_form()
        if at_ms is None:
            _set_run_section(connection, {run_id: checked.values}, now_ms)
            return True
        return sections.merge(connection, [replace(checked, time_ms=min(at_ms, now_ms))])

    @in_transaction
    def set_sections(
        self,
        connection: Connection,
        run_id: int,
        sections: Mapping[str, Mapping[str, Any]],
        now_ms: int,
        removed: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Set keys of several sections on behalf of a user, as `set_about` does.

        Args:
            removed: keys to remove, by section.

        Raises:
            ValueError: a value that cannot be stored.
            UnknownRun: there is no run with this id.
        """
        checked = {
            name: SectionUpdate(run_id, name, dict(values), now_ms).to_stored_form().values
            for name, values in sections.items()
        }
        for name, values in checked.items():
            _set_section(connection, name, {run_id: values}, now_ms)
        for name, keys in (removed or {}).items():
            _set_section(connection, name, {run_id: {}}, now_ms, tuple(keys))

    @in_transaction
    def tag(
        self,
        connection: Connection,
        run_ids: Collection[int],
        now_ms: int,
        add: Sequence[str] = (),
        remove: Sequence[str] = (),
    ) -> None:
        """Add and remove tags of runs.

        Raises:
            ValueError: a tag that is empty or longer than 256 characters.
            UnknownRun: one of the runs does not exist; then nothing is changed.
        """
        added = [checked_name("tag", tag) for tag in add]
        ids = lock_known_runs(connection, run_ids)
        documents = read_documents(connection, ids, ["run"])
        changes: dict[int, dict[str, Any]] = {}
        for run_id in ids:
            before = tags_of(documents.get(SectionKey(run_id, "run", ""), SectionDocument()).values)
            after = [tag for tag in dict.fromkeys([*before, *added]) if tag not in remove]
            if after != before:
                changes[run_id] = {"tags": after}
        _set_run_section(connection, changes, now_ms)

    def request_stop(self, run_id: int, now_ms: int) -> None:
        """Record a user's request to stop, for a writer's next request to pass on; or raise UnknownRun."""
        self._set([run_id], stop_requested_ms=now_ms)

    def stops_requested(self, run_ids: Collection[int]) -> dict[int, int]:
        """Return those of these runs for which a stop was requested, and when."""
        with self._database.read() as connection:
            statement = select(run.c.id, run.c.stop_requested_ms).where(
                among(connection, run.c.id, run_ids), run.c.stop_requested_ms.is_not(None)
            )
            return dict(connection.execute(statement).all())

    def in_trash(self, run_ids: Collection[int]) -> set[int]:
        """Return those of these runs that are in the trash."""
        with self._database.read() as connection:
            conditions = among(connection, run.c.id, run_ids)
            statement = select(run.c.id).where(conditions, run.c.deleted_ms.is_not(None))
            return set(connection.execute(statement).scalars())

    def delete(self, run_ids: Collection[int], now_ms: int, at_ms: int | None = None) -> int:
        """Move runs, or none, to the trash, which only `Filter(deleted=True)` lists; or raise UnknownRun.

        Args:
            at_ms: when that was done, if it was before: a run that was restored later stays.

        Returns:
            how many were moved there.
        """
        ids = list(run_ids)
        return self._database.write(lambda connection: set_in_trash(connection, ids, True, now_ms, at_ms))

    def restore(self, run_ids: Collection[int], now_ms: int, at_ms: int | None = None) -> int:
        """Undo `delete`; raise UnknownRun if one of them was purged, or never existed. Arguments are its."""
        ids = list(run_ids)
        return self._database.write(lambda connection: set_in_trash(connection, ids, False, now_ms, at_ms))

    def trashed_before(self, before_ms: int) -> list[int]:
        """Return the ids of runs moved to the trash before a time, for `purge` after their samples."""
        with self._database.read() as connection:
            statement = select(run.c.id).where(run.c.deleted_ms < before_ms).order_by(run.c.id)
            return list(connection.execute(statement).scalars())

    @in_transaction
    def purge(self, connection: Connection, run_ids: Collection[int], now_ms: int) -> None:
        """Delete runs permanently, with everything but their samples: delete those first, by lane.

        Only runs in the trash are deleted. Their ids are never reused.
        """
        ids = list(run_ids)
        theirs = among(connection, run.c.id, ids) & run.c.deleted_ms.is_not(None)
        connection.execute(select(run.c.id).where(theirs).with_for_update())
        run_places = read_places(connection, theirs)
        remember_purged(
            connection, ((run_place.entity_id, run_place.uid) for run_place in run_places), now_ms
        )
        for run_place in run_places:
            if run_place.entity_id is not None and run_place.entity is not None:
                owner = (run_place.entity_id, run_place.entity)
                record(
                    connection,
                    now_ms,
                    SYSTEM,
                    "run.purge",
                    entity=owner,
                    project=run_place.project,
                    run=run_place.uid,
                )
        connection.execute(delete(run).where(theirs))

    @in_transaction
    def _set(self, connection: Connection, /, run_ids: Collection[int], **columns: int | None) -> None:
        ids = lock_known_runs(connection, run_ids)
        connection.execute(update(run).where(among(connection, run.c.id, ids)).values(columns))


def _set_run_section(connection: Connection, changes: Mapping[int, dict[str, Any]], now_ms: int) -> None:
    _set_section(connection, "run", changes, now_ms)


def _set_section(
    connection: Connection,
    name: str,
    changes: Mapping[int, dict[str, Any]],
    now_ms: int,
    removed: tuple[str, ...] = (),
) -> None:
    """Set or remove keys of a section of runs, even if records with later times set them before."""
    documents = read_documents(connection, lock_known_runs(connection, changes), [name])
    updates = []
    for run_id, values in changes.items():
        document = documents.get(SectionKey(run_id, name, ""), SectionDocument())
        present = [key for key in (*values, *removed) if key in document.values]
        latest_ms = max([now_ms, *(document.time_of(key) for key in present)])
        updates.append(SectionUpdate(run_id, name, values, latest_ms, removed=removed))
    if updates:
        sections.merge(connection, updates)
