"""Changes that users make to the runs of this machine, recorded beside their journals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from runvitals.journal.paths import check_run_id, run_dir
from runvitals.model.errors import CannotWrite, UnknownProject, UnknownRun
from runvitals.model.names import project_name
from runvitals.model.run import Run
from runvitals.readers.journals.runs import RunList
from runvitals.server.library.editable_library import Also
from runvitals.server.library.local.removed_runs import check_removable, remove_folder
from runvitals.server.library.local.run_edits import RunEdits

T = TypeVar("T")


class JournalChanges(ABC):
    """The changes of a library of journals: an `EditableLibrary`, which documents the methods.

    A run in the trash keeps its folder, until it is removed.

    Attributes:
        clock: the time now, ms UTC.
        directory: the data folder.
    """

    clock: Callable[[], int]
    directory: str
    _list: RunList
    _edits: RunEdits

    @abstractmethod
    async def in_turn(self, work: Callable[[], T]) -> T:
        """Do work on the list of runs in a thread, one at a time; the list is read again afterwards."""

    async def delete(
        self, run_id: str, number: int | None = None, also: Also = None, at_ms: int | None = None
    ) -> None:
        """See `EditableLibrary.delete`."""
        await self._edit(run_id, {"deleted": True}, also, at_ms)

    async def restore(
        self, run_id: str, number: int | None = None, also: Also = None, at_ms: int | None = None
    ) -> None:
        """See `EditableLibrary.restore`."""
        await self._edit(run_id, {"deleted": False}, also, at_ms)

    async def edit(
        self,
        run_id: str,
        values: dict[str, Any],
        number: int | None = None,
        also: Also = None,
        at_ms: int | None = None,
    ) -> None:
        """See `EditableLibrary.edit`."""
        await self._edit(run_id, _stored_fields(values), also, at_ms)

    async def _edit(self, run_id: str, values: Mapping[str, Any], also: Also, at_ms: int | None) -> None:
        may_be_in_trash = at_ms is not None or values.get("deleted") is False

        def work() -> None:
            self._record(self._run(run_id, may_be_in_trash), values, at_ms)

        await self._change(work, also)

    async def tag(
        self,
        run_id: str,
        add: Sequence[str],
        remove: Sequence[str],
        number: int | None = None,
        also: Also = None,
    ) -> None:
        """See `EditableLibrary.tag`."""

        def work() -> None:
            run = self._run(run_id)
            tags = [tag for tag in dict.fromkeys([*run.tags, *add]) if tag not in remove]
            if tags != run.tags:
                self._record(run, {"tags": tags})

        await self._change(work, also)

    async def rename_project(
        self, name: str, new_name: str, number: int | None = None, also: Also = None
    ) -> None:
        """See `EditableLibrary.rename_project`."""

        def work() -> None:
            runs, trash = self._list.with_trash(self.clock())
            every = [*runs, *trash]
            if any(run.project == project_name(new_name) for run in every):
                raise ValueError(f"there is a project {new_name!r} already")
            self._record_all(_of_project(every, name), {"project": project_name(new_name)})

        await self._change(work, also)

    async def delete_project(self, name: str, number: int | None = None) -> int:
        """See `EditableLibrary.delete_project`."""

        def work() -> int:
            runs = _of_project(self._list.runs(self.clock()), name)
            self._record_all(runs, {"deleted": True})
            return len(runs)

        return await self._change(work, None)

    async def remove(self, run_ids: Sequence[str]) -> tuple[list[str], dict[str, str]]:
        """Delete the folders of runs in the trash; return which, and why the others were not."""

        def work() -> tuple[list[str], dict[str, str]]:
            removed: list[str] = []
            problems: dict[str, str] = {}
            for run_id in dict.fromkeys(run_ids):
                try:
                    run = self._run(run_id, may_be_in_trash=True)
                    check_removable(run)
                    remove_folder(run_dir(run_id, self.directory))
                except (UnknownRun, CannotWrite, ValueError) as error:
                    problems[run_id] = str(error)
                else:
                    removed.append(run_id)
            return removed, problems

        return await self.in_turn(work)

    def _run(self, run_id: str, may_be_in_trash: bool = False) -> Run:
        """Return a run as it is now, or raise UnknownRun."""
        run = self._list.run(check_run_id(run_id), self.clock())
        if run is None:
            raise UnknownRun(f"no run {run_id!r} in {self.directory}: the API expects a full run id")
        if run.deleted_ms is not None and not may_be_in_trash:
            raise in_trash(run_id)
        return run

    def _record_all(self, runs: Iterable[Run], values: Mapping[str, Any]) -> None:
        for run in runs:
            self._record(run, values)

    def _record(self, run: Run, values: Mapping[str, Any], at_ms: int | None = None) -> None:
        """Record an edit, by default as later than all that it replaces, whatever other clocks say."""
        if at_ms is None:
            at_ms = max(self.clock(), self._list.about_time(run.id, values) + 1)
        self._edits.record(run.id, values, at_ms)

    async def _change(self, work: Callable[[], T], also: Also) -> T:
        result = await self.in_turn(work)
        if also is not None:
            also()
        return result


def in_trash(run_id: str) -> UnknownRun:
    """Return the error of a request for a run in the trash."""
    return UnknownRun(f"run {run_id!r} is in the trash: POST /api/v1/runs/{run_id}/restore restores it")


def _stored_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    fields = dict(values)
    if "project" in fields:
        fields["project"] = project_name(fields["project"])
    return fields


def _of_project(runs: Iterable[Run], name: str) -> list[Run]:
    of_project = [run for run in runs if run.project == name]
    if not of_project:
        raise UnknownProject(f"no project {name!r}")
    return of_project
