"""The interface between the API and a library whose runs can be changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

Also = Callable[[], None] | None


@runtime_checkable
class EditableLibrary(Protocol):
    """A library whose runs and projects can be changed: that of a shared server.

    `number`: that of the run or project, as in `Library.open`. `also`: further writes, which happen with the
    change or not at all.
    """

    async def stop(self, run_id: str, number: int | None = None, also: Also = None) -> None:
        """Record that a user requests the end of a run.

        Raises:
            UnknownRun: there is no such run.
            ValueError: it has ended.
        """

    async def delete(self, run_id: str, number: int | None = None, also: Also = None) -> None:
        """Move a run to the trash.

        Raises:
            UnknownRun: there is no such run.
        """

    async def restore(self, run_id: str, number: int | None = None, also: Also = None) -> None:
        """Restore a run from the trash.

        Raises:
            UnknownRun: there is no such run.
        """

    async def edit(
        self, run_id: str, values: dict[str, Any], number: int | None = None, also: Also = None
    ) -> None:
        """Set the name, notes, tags, group, job_type or project of a run.

        Raises:
            UnknownRun: there is no such run.
            ValueError: a value that cannot be stored.
        """

    async def set_sections(
        self,
        run_id: str,
        sections: Mapping[str, Mapping[str, Any]],
        number: int | None = None,
        also: Also = None,
        removed: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Set keys of several sections of a run, such as its configuration.

        Args:
            removed: keys to remove, by section.

        Raises:
            UnknownRun: there is no such run.
            ValueError: a value that cannot be stored.
        """

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

    async def rename_project(
        self, name: str, new_name: str, number: int | None = None, also: Also = None
    ) -> None:
        """Rename a project.

        Raises:
            UnknownProject: no run was ever in it.
            ValueError: there is a project of the new name.
        """

    async def delete_project(self, name: str, number: int | None = None, also: Also = None) -> int:
        """Move all runs of a project to the trash, and return their number.

        Raises:
            UnknownProject: no run was ever in it.
        """
