"""What users change of stored runs and projects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool

from runvitals.model.errors import UnknownRun
from runvitals.model.state import RUNNING
from runvitals.server.editable_library import Also
from runvitals.store.metadata import MetadataStore, RunRow

T = TypeVar("T")


class StoredChanges:
    """The changes of a library: an `EditableLibrary`.

    Attributes:
        clock: the time now, ms UTC.
    """

    clock: Callable[[], int]
    _metadata_store: MetadataStore

    def _invalidate_all(self) -> None:
        """Have open runs be read again."""
        raise NotImplementedError

    def _row(self, run_id: str, number: int | None, deleted: bool = False) -> RunRow:
        runs, now_ms = self._metadata_store.runs, self.clock()
        row = runs.find(run_id, now_ms) if number is None else runs.get([number], now_ms).get(number)
        if row is None:
            raise UnknownRun(f"no run {run_id!r} on this server: the API expects a full run id")
        if row.deleted_ms is not None and not deleted:
            raise UnknownRun(
                f"run {run_id!r} is in the trash: POST /api/v1/runs/{run_id}/restore restores it"
            )
        return row

    async def stop(self, run_id: str, number: int | None = None, also: Also = None) -> None:
        """Record that a user requests the end of a run. Its relay gets the request with the next response.

        Raises:
            UnknownRun: there is no such run.
            ValueError: it has ended.
        """

        def work() -> None:
            row = self._row(run_id, number)
            if row.state != RUNNING:
                raise ValueError(f"run {run_id!r} is {row.state}; only a running run can be stopped")
            self._metadata_store.runs.request_stop(row.id, self.clock())

        await self._change(work, also)

    async def delete(self, run_id: str, number: int | None = None, also: Also = None) -> None:
        """Move a run to the trash.

        Raises:
            UnknownRun: there is no such run.
        """
        runs = self._metadata_store.runs
        await self._change(lambda: runs.delete([self._row(run_id, number).id], self.clock()), also)

    async def restore(self, run_id: str, number: int | None = None, also: Also = None) -> None:
        """Restore a run from the trash.

        Raises:
            UnknownRun: there is no such run.
        """
        runs = self._metadata_store.runs
        await self._change(lambda: runs.restore([self._row(run_id, number, deleted=True).id]), also)

    async def edit(
        self, run_id: str, values: dict[str, Any], number: int | None = None, also: Also = None
    ) -> None:
        """Set fields of a run's `run` section.

        Raises:
            UnknownRun: there is no such run.
            ValueError: a value that cannot be stored.
        """
        runs = self._metadata_store.runs
        await self._change(lambda: runs.set_about(self._row(run_id, number).id, values, self.clock()), also)

    async def set_sections(
        self,
        run_id: str,
        sections: Mapping[str, Mapping[str, Any]],
        number: int | None = None,
        also: Also = None,
    ) -> None:
        """Set keys of several sections of a run, such as its configuration.

        Raises:
            UnknownRun: there is no such run.
            ValueError: a value that cannot be stored.
        """
        runs = self._metadata_store.runs
        await self._change(
            lambda: runs.set_sections(self._row(run_id, number).id, sections, self.clock()), also
        )

    async def tag(
        self,
        run_id: str,
        add: Sequence[str],
        remove: Sequence[str],
        number: int | None = None,
        also: Also = None,
    ) -> None:
        """Add and remove tags of a run.

        Raises:
            UnknownRun: there is no such run.
            ValueError: a tag that cannot be stored.
        """
        runs = self._metadata_store.runs
        await self._change(lambda: runs.tag([self._row(run_id, number).id], self.clock(), add, remove), also)

    async def rename_project(
        self, name: str, new_name: str, number: int | None = None, also: Also = None
    ) -> None:
        """Rename a project.

        Raises:
            UnknownProject: no run was ever in it.
            ValueError: there is a project of the new name.
        """
        projects = self._metadata_store.projects
        await self._change(lambda: projects.rename(number or projects.id(name), new_name, self.clock()), also)

    async def delete_project(self, name: str, number: int | None = None, also: Also = None) -> int:
        """Move all runs of a project to the trash, and return their number.

        Raises:
            UnknownProject: no run was ever in it.
        """
        projects = self._metadata_store.projects
        return await self._change(lambda: projects.delete(number or projects.id(name), self.clock()), also)

    async def _change(self, work: Callable[[], T], also: Also) -> T:
        def both() -> T:
            result = work()
            if also is not None:
                also()
            return result

        result = await run_in_threadpool(self._metadata_store.in_one_transaction, both)
        self._invalidate_all()
        return result
