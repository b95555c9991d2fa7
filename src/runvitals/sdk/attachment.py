"""Attaches a training process to its run: a journal file, and a connection to the monitor."""

from __future__ import annotations

import _socket
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from runvitals.journal import frames, paths
from runvitals.journal.clock import RunClock, boot_id
from runvitals.journal.records import Record
from runvitals.journal.writer import JournalWriter
from runvitals.model import media
from runvitals.model.ending import ProcessExit
from runvitals.model.state import host_ending
from runvitals.monitoring.environment import redaction
from runvitals.monitoring.settings.messages import notify
from runvitals.monitoring.settings.settings import SETTINGS
from runvitals.sdk import spawned_worker
from runvitals.sdk.data_folder import working_folder
from runvitals.sdk.delivery import destinations, wait_for_delivery
from runvitals.sdk.identity import RunIdentity
from runvitals.sdk.monitor_connection import MonitorConnection
from runvitals.sdk.printed_output import record_output
from runvitals.sdk.run_clock import clock_of_run

if TYPE_CHECKING:
    from runvitals.sdk.opener import Opener

_RECORDED_SETTINGS = (
    "sampling_interval", "disk_paths", "process_tree", "gpu_ids", "collectors", "labels", "host_root",
)  # fmt: skip
_DESCRIBING_SETTINGS = ("name", "project", "group", "job_type", "tags", "notes")


def host_name() -> str:
    """Return the name of this machine, `localhost` if it has none."""
    return _socket.gethostname() or "localhost"  # `socket` would take 2.5 ms at every script's start


def wandb_run() -> dict[str, Any] | None:
    """Return the W&B run that the training has open, for the relay to deliver our samples to.

    `stats` says whether W&B records its own system metrics for it. None without such a run.
    """
    run = getattr(sys.modules.get("wandb"), "run", None)
    if run is None:
        return None
    settings = run.settings
    off = getattr(settings, "x_disable_stats", None) or getattr(settings, "_disable_stats", None)
    return {
        "entity": run.entity,
        "project": run.project,
        "id": run.id,
        "base_url": settings.base_url,
        "offline": bool(run.offline),
        "stats": not off,
        "shared": getattr(settings, "mode", None) == "shared",
    }


def site_folders() -> list[str]:
    """Return the folders of installed packages, from the strings in `sys.path`; Python ignores the rest."""
    paths = [path for path in sys.path if isinstance(path, str)]
    return [path for path in paths if path.endswith(("site-packages", "dist-packages"))]


def project_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the project and, if it is set, the team or user of a run.

    Every journal file has them: it may be the only one that a relay finds.
    """
    entity = {"entity": values["entity"]} if values["entity"] else {}
    return {"project": values["project"], **entity}


def monitor_spec(
    values: Mapping[str, Any],
    run_id: str,
    directory: str,
    attach: Mapping[str, Any],
    argv: list[str],
    clock: RunClock,
    identity: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the spec of a run's monitor: see `runvitals.monitoring.monitor.launch.connect`.

    Args:
        identity: what to record of the run besides its settings; see `RunIdentity.about`.
    """
    options = _source_options(values)
    return {
        "run": run_id,
        "directory": directory,
        **project_fields(values),
        "host": host_name(),
        "boot_id": boot_id(),
        "clock_ms": clock.anchor_ms,
        "described_ms": clock.now_ms(),
        "settings": {
            **{name: values[name] for name in _RECORDED_SETTINGS},
            **({"entity": values["entity"]} if values["entity"] else {}),
            # Recorded in redacted form; the monitor gets the real values, with secrets, in `options`.
            **{name: SETTINGS[name].redact(value) for name, value in options.items()},
        },
        "options": options,
        "destinations": destinations(values),
        "about": _description(values, identity or {}),
        "attach": {"op": "attach", **attach},
        "trainer": {
            "python": sys.version.split()[0],
            "executable": sys.executable,
            "argv": argv,
            "cwd": working_folder(),
        },
        "site": site_folders(),
    }


def _source_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of single sources that are set."""
    names = [setting.name for setting in SETTINGS.values() if setting.of_source]
    return {name: values[name] for name in names if values[name]}


def _description(values: Mapping[str, Any], identity: Mapping[str, Any]) -> dict[str, Any]:
    """Return the run's names, tags, notes and identity, with secrets redacted; empty ones are omitted."""
    about: dict[str, Any] = redaction.entries({name: values[name] for name in _DESCRIBING_SETTINGS})
    about.update(identity)
    if any(destination.partition(":")[0] == "wandb" for destination in destinations(values)):
        about["wandb"] = wandb_run()
    return {name: value for name, value in about.items() if value}


class Attachment:
    """This process's part in a run: its journal file and its connection to the monitor.

    Args:
        values: the resolved settings.
        identity: the run, and this process's ranks.
        directory: the data folder.
        about: what to record of the run besides its settings; see `RunIdentity.about`.
        opened_by: the process that has opened the run, of which this one is a worker that is not watched;
            None: this process.

    Raises:
        OSError: the journal file could not be created.
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        identity: RunIdentity,
        directory: str,
        about: Mapping[str, Any],
        opened_by: int | None = None,
    ) -> None:
        run_id = identity.run_id
        self.directory = directory
        self.folder = paths.run_dir(run_id, directory)
        self.opened_by = opened_by or os.getpid()
        self._run_id = run_id
        self._values = values
        self._ranks = dict(identity.ranks)
        self._boot_id = boot_id()
        self.clock = clock_of_run(self.folder, self._boot_id)
        self.journal = self.new_journal({}) if opened_by is None else None
        attach: dict[str, Any] = {"pid": self.opened_by, "role": "train", "writer": None, **self._ranks}
        if self.journal is not None:
            attach["writer"] = self.journal.writer
        self._output = record_output(values, run_id) if opened_by is None else None
        if self._output is not None:
            attach["output"] = self._output.about
        if (parent := spawned_worker.parent_pid()) is not None:
            attach["parent"] = parent
        argv = list(sys.orig_argv or ())
        self._spec = monitor_spec(values, run_id, directory, attach, argv, self.clock, about)
        self._opener: Opener | None = None
        self._monitor = None if self.journal is None else self._connect(self.journal)

    def _connect(self, journal: JournalWriter) -> MonitorConnection:
        monitor = MonitorConnection(self._spec)
        if not monitor.was_connected:
            # Without a monitor, this process has to record the run's name and description.
            journal.json(frames.INFO, {"t": self.clock.now_ms(), "run": self._spec["about"]})
        elif not monitor.started_monitor and not self._ranks.get("rank"):
            # The monitor has recorded the description that `runvitals run`, or another rank, gave it.
            described = _description(self._values, {})
            journal.json(frames.INFO, {"t": self.clock.now_ms(), "run": described})
        return monitor

    def new_journal(self, extra: Mapping[str, object], role: str = "train") -> JournalWriter:
        """Return a new journal file for this process: `train`, or `media` for records that name files."""
        host = host_name()
        return JournalWriter(
            self.folder,
            f"{role}.{paths.safe_name(host)}.{os.getpid()}.{self.clock.now_ms():x}",
            {
                "run": self._run_id,
                **project_fields(self._values),
                "host": host,
                "role": role,
                "pid": os.getpid(),
                "boot_id": self._boot_id,
                "labels": self._values["labels"],
                **self._ranks,
                **extra,
            },
            guarded=True,
            clock=self.clock,
        )

    def ensure_monitor(self) -> None:
        """Restart the monitor if it has died."""
        if self._monitor is not None:
            self._monitor.ensure()

    def finish(self, message: Mapping[str, object], timeout_s: float) -> None:
        """Report that this process is done with the run, then wait for the last sample and for delivery."""
        monitor = self._monitor
        if monitor is None:
            return
        confirmed = monitor.ask(message, timeout_s) is not None
        if not monitor.was_connected:
            self._write_end(message)
        elif not confirmed and timeout_s:
            notify(f"the monitor of run {self._run_id} did not confirm the run's end within {timeout_s:g} s")
        if self._output is not None and not message.get("closing"):
            self._output.restore()
        say = not self._values["quiet"] and not self._ranks.get("rank")
        wait_for_delivery(self._values, self._run_id, self.directory, say)

    def _write_end(self, message: Mapping[str, object]) -> None:
        """Record how the run ended, because no monitor could be started to do so."""
        code = message.get("exit_code")
        exit = ProcessExit(code if isinstance(code, int) else None, None)
        ending = host_ending([exit], stop_requested=bool(message.get("stopped")))
        if self.journal is not None:
            now_ms = self.clock.now_ms()
            self.journal.json(frames.LIFECYCLE, {"t": now_ms, "what": "end", **ending.as_dict()})

    def after_fork(self) -> None:
        """Close a forked child's copy of the parent's connection."""
        if self._output is not None:
            self._output.after_fork()
        if self._monitor is not None:
            self._monitor.close()

    def take_over(self, journal: JournalWriter) -> bool:
        """Attach a forked child to the run if the opener has handed it over; return whether it has.

        Args:
            journal: the file that the child writes.
        """
        if self._opener is None:
            from runvitals.sdk.opener import Opener  # few forked processes log

            self._opener = Opener(self._spec["attach"]["pid"], self.folder)
        if not self._opener.has_handed_over():
            return False
        self._opener = None
        self.journal = journal
        self._spec["attach"].update(pid=os.getpid(), writer=journal.writer)
        self._spec["attach"].pop("output", None)
        self._monitor = MonitorConnection(self._spec)
        return True


class ResumeState:
    """The step and the name with which a resumed run continues.

    Args:
        next_step: the step after the last logged one.
        name: the run's name, or None.
    """

    __slots__ = ("name", "next_step")

    def __init__(self, next_step: int, name: str | None) -> None:
        self.next_step = next_step
        self.name = name

    @classmethod
    def read(cls, folder: str) -> ResumeState:
        """Read the whole journal of a run's folder."""
        from runvitals.journal.reader import read_run

        next_step, names = 0, {}
        for record in read_run(folder):
            if _is_logged(record) and record.value.get("step") is not None:
                next_step = max(next_step, int(record.value["step"]) + 1)
            elif record.type == frames.INFO:
                about = record.value.get("run") or {}
                names.update({key: about[key] for key in ("name", "default_name") if about.get(key)})
        return cls(next_step, names.get("name") or names.get("default_name"))


def _is_logged(record: Record) -> bool:
    """Return whether a call of `log` wrote a record."""
    return record.type == frames.HISTORY or (
        record.type == frames.MEDIA and record.value["kind"] != media.FILE
    )
