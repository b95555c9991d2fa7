"""Changes that users make to stored runs and projects."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool

from runvitals.model.ending import Ending
from runvitals.model.errors import UnknownRun
from runvitals.model.state import LOST, RUNNING
from runvitals.server.library.editable_library import Also
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.run_rows import RunRow
from runvitals.server.runs.storage.writers import WriterEnd

T = TypeVar("T")


class StoredChanges(ABC):
    """The changes of a library: a `StoppingLibrary`, which documents the methods.

    Attributes:
        clock: the time now, ms UTC.
        on_change: called after each change; None: nobody else needs to know.
    """

    clock: Callable[[], int]
    on_change: Callable[[], None] | None = None
    _metadata_store: MetadataStore

    @abstractmethod
    def changed_elsewhere(self) -> None:
        """Have open runs be read again. Thread-safe."""

    def refresh(self) -> None:
        """Have open runs be read again, here and at other servers, after a change."""
        self.changed_elsewhere()
        if self.on_change is not None:
            self.on_change()

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
        """See `StoppingLibrary.stop`."""

        def work() -> None:
            row = self._row(run_id, number)
            if row.state != RUNNING:
                raise ValueError(f"run {run_id!r} is {row.state}; only a running run can be stopped")
            self._metadata_store.runs.request_stop(row.id, self.clock())

        await self._change(work, also)

    async def fail(self, run_id: str, number: int | None = None, also: Also = None) -> None:
        """Record for hosts whose end is unknown that they have failed.

        Raises:
            ValueError: the run has ended.
        """

        def work() -> None:
            row = self._row(run_id, number)
            if row.state not in (RUNNING, LOST):
                raise ValueError(
                    f"run {run_id!r} is {row.state}; only a running or lost run can be marked as failed"
                )
            writers, now_ms = self._metadata_store.writers, self.clock()
            writers.record_ends(
                [
                    WriterEnd(writer.id, Ending("failed"), now_ms)
                    for writer in writers.of_runs([row.id])[row.id]
                    if writer.ending is None
                ]
            )

        await self._change(work, also)

    async def delete(
        self, run_id: str, number: int | None = None, also: Also = None, at_ms: int | None = None
    ) -> None:
        """See `EditableLibrary.delete`."""

        def work() -> bool:
            row = self._row(run_id, number, deleted=at_ms is not None)
            return self._metadata_store.runs.delete([row.id], self.clock(), at_ms) > 0

        await self._change_if(work, also)

    async def restore(
        self, run_id: str, number: int | None = None, also: Also = None, at_ms: int | None = None
    ) -> None:
        """See `EditableLibrary.restore`."""

        def work() -> bool:
            row = self._row(run_id, number, deleted=True)
            return self._metadata_store.runs.restore([row.id], self.clock(), at_ms) > 0

        await self._change_if(work, also)

    async def edit(
        self,
        run_id: str,
        values: dict[str, Any],
        number: int | None = None,
        also: Also = None,
        at_ms: int | None = None,
    ) -> None:
        """See `EditableLibrary.edit`."""

        def work() -> bool:
            row = self._row(run_id, number, deleted=at_ms is not None)
            return self._metadata_store.runs.set_about(row.id, values, self.clock(), at_ms)

        await self._change_if(work, also)

    async def set_sections(
        self,
        run_id: str,
        sections: Mapping[str, Mapping[str, Any]],
        number: int | None = None,
        also: Also = None,
        removed: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Set and remove keys of sections, such as the configuration; raise UnknownRun or ValueError."""
        runs = self._metadata_store.runs
        await self._change(
            lambda: runs.set_sections(self._row(run_id, number).id, sections, self.clock(), removed), also
        )

    async def tag(
        self,
        run_id: str,
        add: Sequence[str],
        remove: Sequence[str],
        number: int | None = None,
        also: Also = None,
    ) -> None:
        """See `EditableLibrary.tag`."""
        runs = self._metadata_store.runs
        await self._change(lambda: runs.tag([self._row(run_id, number).id], self.clock(), add, remove), also)

    async def rename_project(
        self, name: str, new_name: str, number: int | None = None, also: Also = None
    ) -> None:
        """See `EditableLibrary.rename_project`."""
        projects = self._metadata_store.projects
        await self._change(lambda: projects.rename(number or projects.id(name), new_name, self.clock()), also)

    async def delete_project(self, name: str, number: int | None = None) -> int:
        """See `EditableLibrary.delete_project`."""
        projects = self._metadata_store.projects
        return await self._change(lambda: projects.delete(number or projects.id(name), self.clock()), None)

    async def _change_if(self, work: Callable[[], bool], also: Also) -> None:
        """Change something; `also` only if the work did, and was not superseded by a later change."""

        def both() -> None:
            if work() and also is not None:
                also()

        await self._change(both, None)

    async def _change(self, work: Callable[[], T], also: Also) -> T:
        def both() -> T:
            result = work()
            if also is not None:
                also()
            return result

        result = await run_in_threadpool(self._metadata_store.in_one_transaction, both)
        self.refresh()
        return result
