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

from runvitals.base.protobuf import Malformed
from runvitals.journal import frames, paths
from runvitals.journal.records import CONSOLE_HEAD
from runvitals.journal.writer import JournalWriter
from runvitals.model.ending import ProcessExit
from runvitals.model.metrics import DEFINITIONS
from runvitals.monitoring.environment import redaction
from runvitals.readers.wandb_files.records import (
    ConsoleOutput,
    EntriesChange,
    HistoryRow,
    MachineInfo,
    Record,
    RunExit,
    RunStart,
    StatsSample,
    WandbAlert,
    WandbMetric,
    decode,
)
from runvitals.readers.wandb_files.transaction_log import TransactionLog

_PID = 1  # W&B does not record it
_DEFAULT_INTERVAL_S = 15.0
_INTERVALS_READ = 20
# W&B shows a run as crashed if it has not ended and its file has not been written to for this long.
CRASHED_AFTER_S = 600.0
_LABEL = "/l:"
_LEVELS = {"WARN": "warning", "ERROR": "error"}


@dataclass(slots=True)
class ImportResult:
    """The result of an import.

    Attributes:
        run, project: the id and the project of the run.
        samples, rows, console_records: numbers of system samples, `wandb.log()` rows and console records.
        damaged: number of records that could not be read and were skipped.
        cut: whether the file ends in the middle of a record.
    """

    run: str
    project: str
    samples: int = 0
    rows: int = 0
    console_records: int = 0
    damaged: int = 0
    cut: bool = False


def import_file(
    path: str, directory: str, run_id: str | None = None, project: str | None = None, team: str = ""
) -> ImportResult:
    """Import a `.wandb` file as a run. The run appears in the data folder only once it is complete.

    Args:
        path: the file. It is not changed, and another process may still be writing to it.
        directory: the data folder.
        run_id, project: replace those in the file.
        team: the team or user here that gets the run if it is delivered; "": the default of the key.

    Raises:
        ValueError: not a `.wandb` file, it contains no run, or the run id is invalid.
        FileExistsError: the run already exists.
        OSError: the file cannot be read, or the journal cannot be written.
    """
    run, interval_s = first_pass(path)
    result = ImportResult(run_id or run.run, project or run.project or "default")
    folder = paths.run_dir(result.run, directory)
    if os.path.exists(folder):
        raise FileExistsError(f"run {result.run} already exists ({folder}); use --run to choose another id")
    draft = os.path.join(paths.runs_dir(directory), f".import-{result.run}-{os.getpid()}")
    try:
        RunImporter(draft, run, interval_s, result, team).write(path)
        os.rename(draft, folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return result


def first_pass(path: str) -> tuple[RunStart, float]:
    """Return the run in a file, and the median interval between its samples in seconds."""
    run: RunStart | None = None
    times: list[int] = []
    for record in _read(path, ImportResult("", "")):
        if isinstance(record, RunStart):
            run = run or record
        elif isinstance(record, StatsSample):
            times.append(record.time_ms)
        if run is not None and len(times) > _INTERVALS_READ:
            break
    if run is None or not run.run:
        raise ValueError(
            f"{path} does not contain a run; a program that has just started writes it after some seconds"
        )
    gaps = [(after - before) / 1000 for before, after in pairwise(times) if after > before]
    return run, median(gaps) if gaps else _DEFAULT_INTERVAL_S


def _read(path: str, result: ImportResult) -> Iterator[Record]:
    with open(path, "rb") as file:
        log = TransactionLog(file, path)
        for payload in log.records():
            try:
                record = decode(payload)
            except Malformed:
                result.damaged += 1
                continue
            if record is not None:
                yield record
        result.damaged += log.damaged
        result.cut = log.cut


def by_machine(record: StatsSample) -> dict[str, dict[str, float]]:
    """Return a sample under our keys, by the label of the machine; "" without one."""
    by_label: dict[str, dict[str, float]] = {}
    for key, value in record.values.items():
        key, _, label = key.partition(_LABEL)
        match = DEFINITIONS.find(key)
        by_label.setdefault(label, {})[match.key if match else key] = value
    return by_label


class RunImporter:
    """Writes the journal files of an import: one for each machine's monitor, one for the training process."""

    def __init__(
        self, folder: str, run: RunStart, interval_s: float, result: ImportResult, team: str
    ) -> None:
        self._team = {"entity": team} if team else {}
        self._folder = folder
        self._run = run
        self._interval_s = interval_s
        self._result = result
        self._monitors: dict[str, JournalWriter] = {}
        self._host = paths.safe_name(run.host or "unknown")
        self._last_ms = run.started_ms
        self._training = self._writer("train", self._host, pid=_PID)
        self._monitor("")  # needed even without system metrics: it records the end

    def write(self, path: str) -> None:
        """Write the records of a file to journals."""
        ended: RunExit | None = None
        for record in _read(path, self._result):
            if isinstance(record, RunExit):
                ended = record
            else:
                self.keep(record)
        self.end(ended, os.stat(path).st_mtime)
        for journal in (self._training, *self._monitors.values()):
            journal.close()
            if journal.error is not None:
                raise journal.error

    def keep(self, record: Record) -> None:
        """Write what a record says."""
        if isinstance(record, StatsSample):
            self._sample(record)
        elif isinstance(record, HistoryRow):
            self._row(record)
        elif isinstance(record, ConsoleOutput):
            self._print(record)
        elif isinstance(record, RunStart):
            self._describe_run(record)
        elif isinstance(record, EntriesChange):
            removed = {"removed": {record.of: list(record.remove)}} if record.remove else {}
            self._note(
                frames.INFO, self._last_ms, **removed, **{record.of: _without_internals(record.update)}
            )
        elif isinstance(record, MachineInfo):
            self._describe_machine(record.facts)
        elif isinstance(record, WandbMetric):
            self._note(frames.INFO, self._last_ms, metrics={record.name: record.fields})
        elif isinstance(record, WandbAlert):
            level = _LEVELS.get(record.level, "info")
            about = {"title": record.title, "text": record.text}
            self._note(frames.EVENT, self._last_ms, name="alert", level=level, **about)

    def _sample(self, record: StatsSample) -> None:
        for label, values in by_machine(record).items():
            self._monitor(label).sample(record.time_ms, values)
            self._result.samples += 1
        self._last_ms = max(self._last_ms, record.time_ms)

    def _row(self, record: HistoryRow) -> None:
        data = dict(record.data)
        seconds = data.pop("_timestamp", None)
        time_ms = round(seconds * 1000) if _is_number(seconds) else self._last_ms
        data = {key: value for key, value in data.items() if key not in ("_step", "_runtime")}
        self._training.json(frames.HISTORY, {"t": time_ms, "step": record.step, "data": data})
        self._result.rows += 1
        self._last_ms = max(self._last_ms, time_ms)

    def _print(self, record: ConsoleOutput) -> None:
        head = CONSOLE_HEAD.pack(2 if record.error else 1, record.time_ms or self._last_ms)
        self._training.record(frames.CONSOLE, head + record.text.encode())
        self._result.console_records += 1

    def _describe_run(self, run: RunStart) -> None:
        about = {
            "name": run.name, "project": self._result.project, "group": run.group, "job_type": run.job_type,
            "tags": list(run.tags), "notes": run.notes, "imported_from": "wandb", "entity": run.entity,
        }  # fmt: skip
        facts = {key: value for key, value in about.items() if value}
        self._note(frames.INFO, run.started_ms, run=facts, config=_without_internals(run.config))

    def _describe_machine(self, facts: Mapping[str, Any]) -> None:
        clean = dict(facts)
        if "args" in clean:
            clean["args"] = redaction.command(clean["args"])
            self._note(
                frames.INFO, self._last_ms, run={"command": [str(clean.get("program", "")), *clean["args"]]}
            )
        if "git" in clean:
            clean["git"] = {key: redaction.url(value) for key, value in clean["git"].items()}
        self._note(frames.INFO, self._last_ms, machine=clean)

    def end(self, ended: RunExit | None, written_s: float) -> None:
        """Write how the run ended, unless it may still be running.

        It may if it has no end, and the file was written to a short time ago.
        """
        if ended is None and time.time() - written_s < CRASHED_AFTER_S:
            return  # the run may still be running
        process_exit = ProcessExit(ended.exit_code if ended else None, None)
        process_exit.unannounced = ended is None
        time_ms = self._last_ms
        if ended is not None:
            time_ms = max(time_ms, self._run.started_ms + 1000 * ended.runtime_s)
        self._note(frames.LIFECYCLE, time_ms, what="exit", pid=_PID, **process_exit.as_dict())
        end = {"t": time_ms, "what": "end", **process_exit.ending().as_dict()}
        for journal in self._monitors.values():
            journal.json(frames.LIFECYCLE, end)

    def _monitor(self, label: str) -> JournalWriter:
        """Return the journal of a machine. W&B distinguishes machines that log to one run by a label."""
        if label not in self._monitors:
            host = paths.safe_name(label) if label else self._host
            journal = self._writer("monitor", host, interval_s=self._interval_s)
            self._monitors[label] = journal
            if not label:
                process = {"role": "train", "rank": None, "writer": self._training.writer}
                self._note(frames.LIFECYCLE, self._run.started_ms, what="attach", pid=_PID, **process)
        return self._monitors[label]

    def _writer(self, role: str, host: str, pid: int | None = None, **about: object) -> JournalWriter:
        process = f"{host}.{pid}" if pid else host
        head = {"run": self._result.run, "project": self._result.project, "host": host, "role": role}
        head |= self._team
        began_ms = self._run.started_ms
        name = f"{role}.{process}.{began_ms:x}"
        return JournalWriter(self._folder, name, {**head, "t": began_ms, "pid": pid, "rank": None, **about})

    def _note(self, type: int, time_ms: int, **value: object) -> None:
        self._monitors[""].json(type, {"t": time_ms, **value})


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and isfinite(value)


def _without_internals(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration or summary without W&B's internal entries, and with `{"value": …}` unwrapped."""
    return {
        key: value["value"]
        if isinstance(value, Mapping) and set(value) <= {"value", "desc"} and value
        else value
        for key, value in values.items()
        if key.partition(".")[0] not in ("_wandb", "_step", "_runtime", "_timestamp")
    }
