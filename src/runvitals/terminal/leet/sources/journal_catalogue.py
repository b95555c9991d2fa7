"""The runs of a data folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runvitals.readers.journals.runs import RunList

if TYPE_CHECKING:
    from runvitals.model.run import Run
    from runvitals.terminal.leet.sources.run_source import RunSource


class JournalCatalogue:
    """The runs of a data folder."""

    filters_itself = False

    def __init__(self, directory: str) -> None:
        self.title = self.directory = directory
        self._list = RunList(directory)

    def runs(self, now_ms: int, filter_text: str) -> tuple[list[Run], int]:
        """Return the runs of the folder, newest first, and their number; the filter is ignored."""
        runs = self._list.runs(now_ms)
        return runs, len(runs)

    def open(self, run_id: str) -> RunSource:
        """Return a run of this folder.

        NumPy, which its series need, is loaded here, after the screen has been drawn for the first time.
        """
        from runvitals.terminal.leet.sources.journals import JournalSource

        return JournalSource(run_id, self.directory)

    def close(self) -> None:
        """Do nothing: no file is kept open."""
