"""Imports a `.wandb` file: writes a journal as if the run had been recorded by runvitals."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from statistics import median
from typing import Any

from runvitals.environment import redaction
from runvitals.journal import frames, paths
from runvitals.journal.records import CONSOLE_HEAD
from runvitals.journal.writer import Writer
from runvitals.metrics import DEFINITIONS
from runvitals.model.ending import ProcessExit
from runvitals.protobuf import Malformed
from runvitals.wandb_files.records import (
    Alert,
    Changed,
    Environment,
    Exit,
    History,
    Output,
    Record,
    Started,
    Stats,
    decode,
)
from runvitals.wandb_files.transaction_log import TransactionLog

_PID = 1  # W&B does not keep it
_DEFAULT_INTERVAL_S = 15.0
_GAPS_LOOKED_AT = 20
# W&B's own viewer takes a run for crashed that has neither an end nor a write for so long.
_CRASHED_AFTER_S = 600.0
_LABEL = "/l:"
_LEVELS = {"WARN": "warning", "ERROR": "error"}


@dataclass(slots=True)
class Imported:
    """What came of an import.

    Attributes:
        run: the run's id; `project`: its project.
        samples, rows, pieces: of system metrics, of `wandb.log()`, of the console.
        damaged: places in the file that could not be read.
        cut: the file ends in the middle of a record.
    """

    run: str
    project: str
    samples: int = 0
    rows: int = 0
    pieces: int = 0
    damaged: int = 0
    cut: bool = False


def import_file(path: str, directory: str, run_id: str | None = None, project: str | None = None) -> Imported:
    """Make a run of a `.wandb` file.

    Nothing of it is to be seen until all is there.

    Args:
        path: the file; it is not changed, and may still be written to.
        directory: our data folder.
        run_id, project: instead of those in the file.

    Raises:
        ValueError: no such file format, no run in it, or an id that cannot be.
        FileExistsError: there is a run of that id.
        OSError: it cannot be read or written.
    """
    run, interval_s = _look(path)
    imported = Imported(run_id or run.run, project or run.project or "default")
    folder = paths.run_dir(imported.run, directory)
    if os.path.exists(folder):
        raise FileExistsError(f"run {imported.run} already exists ({folder}); use --run to choose another id")
    draft = os.path.join(paths.runs_dir(directory), f".import-{imported.run}-{os.getpid()}")
    try:
        _Import(draft, run, interval_s, imported).take(path)
        os.rename(draft, folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return imported


def _look(path: str) -> tuple[Started, float]:
    """The run in a file, and the seconds between two of its samples."""
    run: Started | None = None
    times: list[int] = []
    for record in _read(path, Imported("", "")):
        if isinstance(record, Started):
            run = run or record
        elif isinstance(record, Stats):
            times.append(record.time_ms)
        if run is not None and len(times) > _GAPS_LOOKED_AT:
            break
    if run is None or not run.run:
        raise ValueError(f"{path} does not contain a run")
    gaps = [(after - before) / 1000 for before, after in pairwise(times) if after > before]
    return run, median(gaps) if gaps else _DEFAULT_INTERVAL_S


def _read(path: str, imported: Imported) -> Iterator[Record]:
    with open(path, "rb") as file:
        log = TransactionLog(file, path)
        for payload in log.records():
            try:
                record = decode(payload)
            except Malformed:
                imported.damaged += 1
                continue
            if record is not None:
                yield record
        imported.damaged += log.damaged
        imported.cut = log.cut


class _Import:
    """The journals of one import: a monitor for each machine, one training process, its console."""

    def __init__(self, folder: str, run: Started, interval_s: float, imported: Imported) -> None:
        self._folder = folder
        self._run = run
        self._interval_s = interval_s
        self._imported = imported
        self._monitors: dict[str, Writer] = {}
        self._host = paths.safe_name(run.host or "unknown")
        self._last_ms = run.started_ms
        self._training = self._writer("train", self._host, pid=_PID)
        self._monitor("")  # also of a run without system metrics: it keeps the end

    def take(self, path: str) -> None:
        ended: Exit | None = None
        for record in _read(path, self._imported):
            if isinstance(record, Exit):
                ended = record
            else:
                self._keep(record)
        self._end(ended, os.stat(path).st_mtime)
        for journal in (self._training, *self._monitors.values()):
            journal.close()
            if journal.error is not None:
                raise journal.error

    def _keep(self, record: Record) -> None:
        if isinstance(record, Stats):
            self._sample(record)
        elif isinstance(record, History):
            self._row(record)
        elif isinstance(record, Output):
            self._print(record)
        elif isinstance(record, Started):
            self._say_run(record)
        elif isinstance(record, Changed):
            said = {"removed": {record.of: list(record.remove)}} if record.remove else {}
            self._note(frames.INFO, self._last_ms, **said, **{record.of: _without_own(record.update)})
        elif isinstance(record, Environment):
            self._say_machine(record.facts)
        elif isinstance(record, Alert):
            level = _LEVELS.get(record.level, "info")
            about = {"title": record.title, "text": record.text}
            self._note(frames.EVENT, self._last_ms, name="alert", level=level, **about)

    def _sample(self, record: Stats) -> None:
        by_label: dict[str, dict[str, float]] = {}
        for key, value in record.values.items():
            key, _, label = key.partition(_LABEL)
            match = DEFINITIONS.find(key)
            by_label.setdefault(label, {})[match.key if match else key] = value
        for label, values in by_label.items():
            self._monitor(label).sample(record.time_ms, values)
            self._imported.samples += 1
        self._last_ms = max(self._last_ms, record.time_ms)

    def _row(self, record: History) -> None:
        data = dict(record.data)
        seconds = data.pop("_timestamp", None)
        time_ms = round(seconds * 1000) if _is_number(seconds) else self._last_ms
        data = {key: value for key, value in data.items() if key not in ("_step", "_runtime")}
        self._training.json(frames.HISTORY, {"t": time_ms, "step": record.step, "data": data})
        self._imported.rows += 1
        self._last_ms = max(self._last_ms, time_ms)

    def _print(self, record: Output) -> None:
        head = CONSOLE_HEAD.pack(2 if record.error else 1, record.time_ms or self._last_ms)
        self._training.record(frames.CONSOLE, head + record.text.encode())
        self._imported.pieces += 1

    def _say_run(self, run: Started) -> None:
        about = {
            "name": run.name, "project": self._imported.project, "group": run.group, "job_type": run.job_type,
            "tags": list(run.tags), "notes": run.notes, "imported_from": "wandb", "entity": run.entity,
        }  # fmt: skip
        known = {key: value for key, value in about.items() if value}
        self._note(frames.INFO, run.started_ms, run=known, config=_without_own(run.config))

    def _say_machine(self, facts: Mapping[str, Any]) -> None:
        clean = dict(facts)
        if "args" in clean:
            clean["args"] = redaction.command(clean["args"])
            self._note(
                frames.INFO, self._last_ms, run={"command": [str(clean.get("program", "")), *clean["args"]]}
            )
        if "git" in clean:
            clean["git"] = {key: redaction.url(value) for key, value in clean["git"].items()}
        self._note(frames.INFO, self._last_ms, machine=clean)

    def _end(self, ended: Exit | None, written_s: float) -> None:
        if ended is None and time.time() - written_s < _CRASHED_AFTER_S:
            return  # it may still be going on; what is not here is not known
        process_exit = ProcessExit(ended.exit_code if ended else None, None)
        process_exit.unannounced = ended is None
        time_ms = self._last_ms
        if ended is not None:
            time_ms = max(time_ms, self._run.started_ms + 1000 * ended.runtime_s)
        self._note(frames.LIFECYCLE, time_ms, what="exit", pid=_PID, **process_exit.as_dict())
        end = {"t": time_ms, "what": "end", **process_exit.ending().as_dict()}
        for journal in self._monitors.values():
            journal.json(frames.LIFECYCLE, end)

    def _monitor(self, label: str) -> Writer:
        """The journal of a machine, which W&B knows by its label where several log to one run."""
        if label not in self._monitors:
            host = paths.safe_name(label) if label else self._host
            journal = self._writer("monitor", host, interval_s=self._interval_s)
            self._monitors[label] = journal
            if not label:
                place = {"role": "train", "rank": None, "writer": self._training.writer}
                self._note(frames.LIFECYCLE, self._run.started_ms, what="attach", pid=_PID, **place)
        return self._monitors[label]

    def _writer(self, role: str, host: str, pid: int | None = None, **about: object) -> Writer:
        place = f"{host}.{pid}" if pid else host
        head = {"run": self._imported.run, "project": self._imported.project, "host": host, "role": role}
        began_ms = self._run.started_ms
        name = f"{role}.{place}.{began_ms:x}"
        return Writer(self._folder, name, {**head, "t": began_ms, "pid": pid, "rank": None, **about})

    def _note(self, type: int, time_ms: int, **value: object) -> None:
        self._monitors[""].json(type, {"t": time_ms, **value})


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and isfinite(value)


def _without_own(values: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration or summary without W&B's bookkeeping, and without the `{"value": …}` around each
    entry.
    """
    return {
        key: value["value"]
        if isinstance(value, Mapping) and set(value) <= {"value", "desc"} and value
        else value
        for key, value in values.items()
        if key.partition(".")[0] not in ("_wandb", "_step", "_runtime", "_timestamp")
    }
