"""A run as W&B's `Api` shows it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from typing import Any, NoReturn

from runvitals.model.logged_media import SavedFile
from runvitals.readers.servers import RemoteRun
from runvitals.sdk import wandb_names


class ApiRun:
    """A run of a server, with the names of W&B's class. Reading only.

    Attributes:
        id, name, state, project, tags, config, summary: as of `RemoteRun`.
        entity, group, job_type, notes, created_at: as recorded; None where nothing is known.
        lastHistoryStep: the step of the last row, or -1.
    """

    def __init__(self, run: RemoteRun) -> None:
        self._run = run
        self.id = run.id
        self.name = run.name
        self.state: str = run.state
        self.project = run.project
        self.tags = run.tags
        self.summary = run.summary

    @property
    def config(self) -> dict[str, Any]:
        """The hyper-parameters, without entries that begin with `_`."""
        return {name: value for name, value in self._run.config.items() if not name.startswith("_")}

    @property
    def entity(self) -> str | None:
        """The team or user that has the project; None on a server without accounts."""
        return self._run.entity

    @property
    def group(self) -> str | None:
        """The group."""
        return self._run.facts.group

    @property
    def job_type(self) -> str | None:
        """The kind of run."""
        return self._run.facts.job_type

    @property
    def notes(self) -> str:
        """The notes."""
        return self._run.facts.notes

    @property
    def metadata(self) -> dict[str, Any]:
        """Facts about the machine of the run, or of the first one."""
        return next(iter(self._run.facts.machines.values()), {})

    @property
    def created_at(self) -> str:
        """The time when the run started, as ISO 8601 in UTC."""
        started = datetime.fromtimestamp(self._run.facts.started_ms / 1000, timezone.utc)
        return started.strftime("%Y-%m-%dT%H:%M:%SZ")

    @property
    def lastHistoryStep(self) -> int:
        """The step of the last row that was logged, or -1."""
        return max((int(row.step) for row in self._run.history() if row.step is not None), default=-1)

    @property
    def path(self) -> list[str]:
        """Entity, project and id."""
        return [self.entity or "", self.project, self.id]

    def history(
        self,
        samples: int = 500,
        keys: Sequence[str] | None = None,
        x_axis: str = "_step",
        pandas: bool = True,
        stream: str = "default",
    ) -> Any:
        """Return rows of `log()`, or with `stream="system"` the system metrics.

        At most `samples` of them, evenly chosen, as a data frame of pandas if `pandas`, else as a list of
        mappings.

        Args:
            samples: the most rows.
            keys: only rows with all of these names and with `x_axis`, and only these values.
            x_axis: the value that rows are sorted by.
            pandas: whether to return a data frame.
            stream: `default`, or `system` for system metrics, which was `events` in earlier versions.
        """
        columns = None if keys is None else list(dict.fromkeys((x_axis, *keys)))
        rows = self._events() if stream in ("system", "events") else list(self.scan_history(columns))
        rows.sort(key=lambda row: (row.get(x_axis) is None, row.get(x_axis) or 0))
        if len(rows) > samples:
            rows = [rows[index * (len(rows) - 1) // max(1, samples - 1)] for index in range(samples)]
        if not pandas:
            return rows
        import pandas as data_frames

        return data_frames.DataFrame(rows)

    def scan_history(
        self,
        keys: Sequence[str] | None = None,
        page_size: int = 1000,
        min_step: int | None = None,
        max_step: int | None = None,
        use_cache: bool = True,
    ) -> Iterator[dict[str, Any]]:
        """Yield all rows of `log()`. Those with the same step are one row, as W&B records them.

        Args:
            keys: only rows with all of these names, and only these values.
            page_size, use_cache: ignored.
            min_step, max_step: only rows from the first to before the second.
        """
        merged: dict[Any, dict[str, Any]] = {}
        for number, row in enumerate(self._run.history()):
            row_key = ("row", number) if row.step is None else row.step
            merged_row = merged.setdefault(row_key, {})
            merged_row.update(row.data, _step=row.step, _timestamp=row.time_ms / 1000)
        for merged_row in merged.values():
            step = merged_row["_step"]
            if (min_step is not None and (step is None or step < min_step)) or (
                max_step is not None and (step is None or step >= max_step)
            ):
                continue
            if keys is None:
                yield merged_row
            elif all(key in merged_row for key in keys):
                yield {key: merged_row[key] for key in keys}

    def files(
        self, names: Sequence[str] | None = None, pattern: str | None = None, per_page: int = 50
    ) -> list[ApiFile]:
        """Return the files that were saved with `save`.

        Args:
            names: only those with these names.
            pattern: only those whose name matches it; `%` is any text, as in W&B's function.
            per_page: ignored.
        """
        glob = None if pattern is None else pattern.replace("%", "*")
        return [
            ApiFile(self._run, file)
            for file in self._run.files()
            if (not names or file.name in names) and (glob is None or fnmatchcase(file.name, glob))
        ]

    def stop(self) -> None:
        """Ask the run to stop."""
        self._run.stop()

    def file(self, name: str) -> ApiFile:
        """Return the saved file with this name, or raise LookupError."""
        for file in self.files():
            if file.name == name:
                return file
        raise LookupError(f"run {self.id} has no file {name!r}")

    def _events(self) -> list[dict[str, Any]]:
        by_time: dict[int, dict[str, Any]] = {}
        for key, series in self._run.metrics().items():
            for time_ms, value in zip(series.t, series.values, strict=True):
                row = by_time.setdefault(int(time_ms), {"_timestamp": int(time_ms) / 1000})
                row[f"system.{key}"] = float(value)
        started_ms = self._run.facts.started_ms
        return [
            {"_runtime": (time_ms - started_ms) / 1000, **by_time[time_ms]} for time_ms in sorted(by_time)
        ]

    def __getattr__(self, name: str) -> NoReturn:
        raise wandb_names.api_absence_error("Api.run", name)

    def __repr__(self) -> str:
        return f"<Run {'/'.join(self.path)} ({self.state})>"


class ApiFile:
    """A saved file of a run.

    Attributes:
        name: under which it was saved.
        size: in bytes.
    """

    def __init__(self, run: RemoteRun, file: SavedFile) -> None:
        self._run = run
        self._file = file
        self.name = file.name
        self.size = file.bytes

    def download(
        self, root: str = ".", replace: bool = False, exist_ok: bool = False, api: Any = None
    ) -> str:
        """Download it into a folder; returns its path.

        Args:
            root: the folder.
            replace: whether a file that exists may be replaced.
            exist_ok: whether a file that exists is kept, without an error.
            api: ignored; W&B's function has it.

        Raises:
            FileExistsError: the file exists.
        """
        path = os.path.abspath(os.path.join(root, self.name))
        if not path.startswith(os.path.join(os.path.abspath(root), "")):
            raise ValueError(f"the file's name {self.name!r} leads out of {root}")
        if os.path.exists(path) and not replace:
            if exist_ok:
                return path
            raise FileExistsError(f"{path} exists; use replace=True")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self._run.download(self._file, path)
        return path
