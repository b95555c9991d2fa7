"""The `.wandb` files of a folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from runvitals.model.ending import Ending
from runvitals.model.run import Run
from runvitals.readers.wandb_files.following import WandbFile, summary
from runvitals.readers.wandb_files.names import files_below

if TYPE_CHECKING:
    from runvitals.terminal.leet.sources.run_source import RunSource


class WandbCatalogue:
    """The `.wandb` files of a folder, as `wandb` makes it, or of its subfolder `wandb`."""

    filters_itself = False

    def __init__(self, folder: str) -> None:
        self.title = folder
        self._folder = folder
        self._summaries: dict[str, tuple[int, WandbFile | None]] = {}
        self._paths: dict[str, str] = {}

    def runs(self, now_ms: int, filter_text: str) -> tuple[list[Run], int]:
        """Return the runs of all files, newest first, and their number; the filter is ignored."""
        by_id: dict[str, Run] = {}
        for path in files_below(self._folder):
            file = self._summary(path)
            if file is not None and file.run.run:
                # A resumed run has several files; the newest stands for it.
                other = by_id.get(file.run.run)
                if other is None or other.started_ms < file.run.started_ms:
                    by_id[file.run.run] = _to_run(file, now_ms)
                    self._paths[file.run.run] = path
        runs = sorted(by_id.values(), key=lambda run: -run.started_ms)
        return runs, len(runs)

    def _summary(self, path: str) -> WandbFile | None:
        """Return the summary of a file, read again only if it changed; None for one without a run."""
        try:
            changed_ns = os.stat(path).st_mtime_ns
            if self._summaries.get(path, (0, None))[0] != changed_ns:
                self._summaries[path] = changed_ns, summary(path)
        except (OSError, ValueError):
            self._summaries[path] = (0, None)
        return self._summaries[path][1]

    def path_of(self, run_id: str) -> str | None:
        """Return the file that stands for a run."""
        return self._paths.get(run_id)

    def choose(self, run_id: str, path: str) -> None:
        """Open this file for a run that has several."""
        self._paths[run_id] = path

    def open(self, run_id: str) -> RunSource:
        """Return a run of this folder.

        NumPy, which its series need, is loaded here, after the screen has been drawn for the first time.
        """
        from runvitals.terminal.leet.sources.wandb import WandbSource

        return WandbSource(self._paths[run_id])

    def close(self) -> None:
        """Do nothing: no file is kept open."""


def _logged_summary(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return a summary without what W&B adds to it."""
    return {key: value for key, value in summary.items() if not key.startswith("_")}


def _to_run(file: WandbFile, now_ms: int) -> Run:
    """Return the run of a list."""
    run = file.run
    state: Any = "running" if file.is_running(now_ms) else "crashed" if file.ended_ms is None else "finished"
    ending = Ending("failed" if file.exit_code else state, file.exit_code)
    is_over = ending.state != "running"
    ended_ms = (file.ended_ms or file.written_ms) if is_over else None
    return Run(
        id=run.run, project=run.project or "default", name=run.name or run.run, group=run.group or None,
        job_type=run.job_type or None, tags=list(run.tags), notes=run.notes, command=[], ending=ending,
        started_ms=run.started_ms, ended_ms=ended_ms,
        duration_ms=max((ended_ms or file.written_ms) - run.started_ms, 0), config=run.config,
        summary=_logged_summary(file.summary), settings={}, machines={}, sources={}, hosts=[], ranks=[],
        events=[], lost_records=0, problems=[], last=file.last,
    )  # fmt: skip
