"""Writes the journal of a run that another system recorded. The run appears once it is complete."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runvitals.base.json_codec import dumps
from runvitals.journal import frames, paths
from runvitals.journal.records import CONSOLE_HEAD
from runvitals.journal.writer import JournalWriter
from runvitals.model import media
from runvitals.model.limits import RECORD_BYTES, TIME_MS
from runvitals.model.run_state import State
from runvitals.model.values import Sanitizer, valid_step
from runvitals.monitoring.environment import redaction
from runvitals.sdk.logged_values import Values
from runvitals.sdk.media.run_files import RunFiles
from runvitals.sdk.media.table import Table

_PID = 1  # the other systems do not record it
_EXIT_CODES = {"finished": 0, "failed": 1}


@dataclass(slots=True)
class RunDescription:
    """The names of a run, and its start.

    Args:
        id: its id in the other system, which it keeps.
        source: the other system's name.
        entity: the team or user there.
        team: the team or user here that gets the run if it is delivered; "": the default of the key.
        about: further fields of the run's description, such as `command`.
    """

    id: str
    project: str
    source: str
    started_ms: int
    name: str = ""
    group: str = ""
    job_type: str = ""
    notes: str = ""
    entity: str = ""
    tags: Sequence[str] = ()
    host: str = "unknown"
    config: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    team: str = ""


def run_id_of(name: str) -> str:
    """The id of a run here: its id in the other system, or one derived from that if it is not valid here.

    Example:
        >>> run_id_of("k3j9x2ab"), run_id_of("run 1")
        ('k3j9x2ab', 'run_1-b945d8cb')
    """
    try:
        return paths.check_run_id(name)
    except ValueError:
        digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
        return f"{paths.safe_name(name)}-{digest}"


def derived_run_id(name: str, identity: str) -> str:
    """Return the id of a run that has none in the other system: of its name and what tells it from others.

    Example:
        >>> derived_run_id("my run", "/logs/my run.csv")
        'my_run-5c3c2bf9'
    """
    digest = hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{paths.safe_name(name)[:64].lstrip('_.-') or 'run'}-{digest}"


def _raise_error(journal: JournalWriter) -> None:
    """Raise the OSError because of which a journal is no longer written, such as a full disk."""
    if journal.error is not None:
        raise journal.error


def _remove_drafts(runs: str, prefix: str) -> None:
    """Remove what imports of a run left behind that were killed, and what this process did."""
    for name in os.listdir(runs) if os.path.isdir(runs) else ():
        pid = name.removeprefix(prefix)
        if not name.startswith(prefix) or not pid.isdecimal():
            continue
        if int(pid) == os.getpid() or not _is_running(int(pid)):
            shutil.rmtree(os.path.join(runs, name), ignore_errors=True)


def _is_running(pid: int) -> bool:
    if os.name != "posix":
        return True  # elsewhere there is no signal 0
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


class RunDraft:
    """The journal of an imported run, which is written in a hidden folder.

    Args:
        directory: the data folder.
        run: the run's description.
        interval_s: the interval between its samples.

    Attributes:
        rows, samples, files: numbers of what was written.
        faults: what had to be changed or left out, with how often.

    Raises:
        FileExistsError: the run already exists.
        ValueError: its id is invalid.

    Example:
        >>> with RunDraft("/data", RunDescription("abc", "digits", "mlflow", 1700000000000)) as draft:
        ...     draft.row(1700000000500, 0, {"loss": 0.5})
        ...     draft.end("finished", 1700000001000)
        ...     draft.complete()
    """

    def __init__(self, directory: str, run: RunDescription, interval_s: float = 10.0) -> None:
        self._folder = paths.run_dir(run.id, directory)
        if os.path.exists(self._folder):
            raise FileExistsError(f"run {run.id} already exists ({self._folder})")
        self._draft = os.path.join(paths.runs_dir(directory), f".import-{run.id}-{os.getpid()}")
        _remove_drafts(paths.runs_dir(directory), f".import-{run.id}-")
        self._run = run
        self._interval_s = interval_s
        self._host = paths.safe_name(run.host or "unknown")
        self._values = Values(lambda fault: None)
        self._files = RunFiles(self._draft)
        self._journals: dict[str, JournalWriter] = {}
        self._training = self._writer("train", self._host)
        self._media: JournalWriter | None = None
        self._last_ms = run.started_ms
        self.rows = self.samples = self.files = 0
        self._describe()

    @property
    def faults(self) -> Mapping[str, int]:
        """The kinds of values that had to be changed to be recorded, with how often."""
        return self._values.faults

    def __enter__(self) -> RunDraft:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._draft, ignore_errors=True)  # it is gone if the run is complete

    def row(self, time_ms: int, step: float | None, data: Mapping[str, Any]) -> None:
        """Write a row of logged values, or raise OSError."""
        values = self._values.row(data)
        if valid_step(step) != step:
            self.fault(f"a step that is not a number from -2⁵³ to 2⁵³: {str(step)[:40]}")
            step = None
        if values:
            self._training.json(frames.HISTORY, {"t": self._time(time_ms), "step": step, "data": values})
            _raise_error(self._training)
            self.rows += 1

    def sample(self, time_ms: int, values: Mapping[str, float], host: str = "") -> None:
        """Write the system metrics of one time, under our keys, or raise OSError."""
        monitor = self._monitor(paths.safe_name(host) if host else self._host)
        monitor.sample(self._time(time_ms), values)
        _raise_error(monitor)
        self.samples += 1

    def print(self, time_ms: int, text: str, error: bool = False) -> None:
        """Write console output."""
        content = text.encode("utf-8", "replace")
        for first in range(0, len(content), RECORD_BYTES):
            head = CONSOLE_HEAD.pack(2 if error else 1, self._time(time_ms))
            self._training.record(frames.CONSOLE, head + content[first : first + RECORD_BYTES])

    def info(self, section: str, values: Mapping[str, Any]) -> None:
        """Write entries of `config`, `summary` or `machine`, with secrets redacted."""
        facts = redaction.entries(self._values.facts(values))
        if facts:
            self._note(frames.INFO, self._last_ms, **{section: facts})

    def event(self, time_ms: int, name: str, level: str, text: str) -> None:
        """Write an event."""
        self._note(frames.EVENT, self._time(time_ms), name=name, level=level, text=self._values.text(text))

    def media(
        self, time_ms: int, step: float | None, name: str, kind: str, items: Sequence[Mapping[str, Any]]
    ) -> None:
        """Write what was logged besides numbers. Files of the items come from `store` or `store_file`."""
        if self._media is None:
            self._media = self._writer("media", self._host)
        sanitizer = Sanitizer()
        (key,) = sanitizer.row({name: None})
        several = [{"kind": kind, **item} for item in items[:1000]]
        value = {
            "t": self._time(time_ms),
            "step": valid_step(step),
            "key": key,
            "kind": kind,
            "items": several,
        }
        payload = dumps(sanitizer.value(value))
        if len(payload) <= RECORD_BYTES:
            self._media.record(frames.MEDIA, payload)
        else:
            self._values.fault("media that are too large for a record")

    def table(
        self, time_ms: int, step: int | None, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]
    ) -> None:
        """Write a table."""
        self.media(time_ms, step, name, media.TABLE, [Table(columns, rows).item(self._files)])

    def store(self, content: bytes) -> dict[str, Any]:
        """Store a file; returns the fields of an item that name it."""
        return self._files.add(content)

    def store_file(self, path: str) -> dict[str, Any] | None:
        """Store a copy of a file, as `store`; one that cannot be read, or is too large, is counted."""
        try:
            return self._files.add_file(os.path.realpath(path))
        except (OSError, ValueError) as error:
            self._values.fault(f"a file that could not be copied ({type(error).__name__})")
            return None

    def saved_file(self, time_ms: int, name: str, path: str) -> None:
        """Copy a file, as `run.save` does. One that cannot be read, or is too large, is counted."""
        item = self.store_file(path)
        if item is not None:
            self.media(time_ms, None, name, media.FILE, [item])
            self.files += 1

    def fault(self, text: str, count: int = 1) -> None:
        """Count something that was left out."""
        self._values.fault(text, count)

    def end(self, state: State | None, ended_ms: int, exit_code: int | None = None) -> None:
        """Write how the run ended.

        Args:
            state: None if it may still be running.
            ended_ms: UTC.
            exit_code: of the training, where it is known.
        """
        if state is None:
            return
        time_ms = max(self._time(ended_ms), self._last_ms)
        code = _EXIT_CODES.get(state) if exit_code is None else exit_code
        ending = {"state": state, "exit_code": code, "signal": None, "out_of_memory": False}
        self._note(frames.LIFECYCLE, time_ms, what="exit", pid=_PID, exit_code=code, signal=None)
        for name, journal in self._journals.items():
            if name.startswith("monitor."):
                journal.json(frames.LIFECYCLE, {"t": time_ms, "what": "end", **ending})

    def complete(self) -> None:
        """Close the files, and give the run its name.

        Raises:
            OSError: something could not be written.
        """
        for journal in self._journals.values():
            journal.close()
            _raise_error(journal)
        os.rename(self._draft, self._folder)

    def _describe(self) -> None:
        run = self._run
        about = {
            "name": run.name[:128], "project": run.project, "group": run.group, "job_type": run.job_type,
            "tags": list(run.tags), "notes": run.notes, "entity": run.entity, "imported_from": run.source,
            **run.about,
        }  # fmt: skip
        facts = {key: value for key, value in about.items() if value}
        process = {"role": "train", "rank": None, "writer": self._training.writer}
        self._note(frames.LIFECYCLE, run.started_ms, what="attach", pid=_PID, **process)
        self._note(frames.INFO, run.started_ms, run=redaction.entries(self._values.facts(facts)))
        self.info("config", run.config)

    def _monitor(self, host: str) -> JournalWriter:
        return self._writer("monitor", host, interval_s=self._interval_s)

    def _writer(self, role: str, host: str, **about: object) -> JournalWriter:
        pid = None if role == "monitor" else _PID
        process = host if pid is None else f"{host}.{pid}"
        name = f"{role}.{process}.{self._run.started_ms:x}"
        if name not in self._journals:
            head = {"run": self._run.id, "project": self._run.project, "host": host, "role": role}
            team = {"entity": self._run.team} if self._run.team else {}
            began = {"t": self._run.started_ms, "pid": pid, "rank": None}
            self._journals[name] = JournalWriter(self._draft, name, {**head, **team, **began, **about})
        return self._journals[name]

    def _note(self, type: int, time_ms: int, **value: object) -> None:
        self._monitor(self._host).json(type, {"t": time_ms, **value})

    def _time(self, time_ms: int) -> int:
        """Return a valid time; the latest one is remembered."""
        valid = min(max(int(time_ms), 0), TIME_MS - 1)
        self._last_ms = max(self._last_ms, valid)
        return valid
