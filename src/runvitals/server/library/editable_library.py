"""The interface between the API and a library whose runs can be changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

Also = Callable[[], None] | None


@runtime_checkable
class EditableLibrary(Protocol):
    """A library whose runs and projects can be changed.

    `number`: that of the run or project, as in `Library.open`. `also`: further writes, which happen with the
    change or not at all. `at_ms`: when the change was made, if that was before: a later one of the same fact
    wins, and the run may be in the trash.
    """

    async def delete(
        self, run_id: str, number: int | None = None, also: Also = None, at_ms: int | None = None
    ) -> None:
        """Move a run to the trash, or raise UnknownRun."""

    async def restore(
        self, run_id: str, number: int | None = None, also: Also = None, at_ms: int | None = None
    ) -> None:
        """Restore a run from the trash, or raise UnknownRun."""

    async def edit(
        self,
        run_id: str,
        values: dict[str, Any],
        number: int | None = None,
        also: Also = None,
        at_ms: int | None = None,
    ) -> None:
        """Set the name, notes, tags, group, job_type, project or star; raise UnknownRun or ValueError."""

    async def tag(
        self,
        run_id: str,
        add: Sequence[str],
        remove: Sequence[str],
        number: int | None = None,
        also: Also = None,
    ) -> None:
        """Add and remove tags of a run; raise UnknownRun, or ValueError for an invalid tag."""

    async def rename_project(
        self, name: str, new_name: str, number: int | None = None, also: Also = None
    ) -> None:
        """Rename a project; raise UnknownProject, or ValueError if the new name is taken."""

    async def delete_project(self, name: str, number: int | None = None) -> int:
        """Move all runs of a project to the trash and return their number, or raise UnknownProject."""


@runtime_checkable
class StoppingLibrary(EditableLibrary, Protocol):
    """A library that reaches the trainings of its runs: that of a shared server."""

    async def stop(self, run_id: str, number: int | None = None, also: Also = None) -> None:
        """Record a user's request to end a run; raise UnknownRun, or ValueError if it has ended."""
