"""The base of `Run`: writes records to the journal, follows forks, and ends the run."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from operator import index
from threading import RLock
from typing import TYPE_CHECKING, Any

from runvitals.base.json_codec import dumps
from runvitals.errors import NotOpen
from runvitals.journal import frames, paths
from runvitals.model.limits import STEP
from runvitals.monitoring.settings.messages import notify
from runvitals.sdk.attachment import Attachment
from runvitals.sdk.logged_summary import LoggedSummary
from runvitals.sdk.logged_values import Values, without_secrets
from runvitals.sdk.recorded_dict import RecordedDict, Summary
from runvitals.sdk.recorded_sections import RecordedSections
from runvitals.sdk.run_arguments import exit_code_of
from runvitals.sdk.serial_executor import SerialExecutor
from runvitals.sdk.training_journal import TrainingJournal
from runvitals.sdk.wandb_run import WandbRun

if TYPE_CHECKING:
    from runvitals.sdk.media.recorder import MediaRecorder
    from runvitals.sdk.stop_handler import StopHandler
    from runvitals.sdk.watching import Watching

_DESCRIBING = ("entity", "group", "job_type", "mode", "notes", "server", "tags")


class RecordedRun(WandbRun):
    """The part of `Run` that writes.

    Args:
        values: the resolved settings.
        run_id: the run's id.
        ranks: the ranks of this process.
        attachment: the connection to the run's journal and monitor; None if nothing is recorded.
    """

    def __init__(
        self, values: Mapping[str, Any], run_id: str, ranks: Mapping[str, Any], attachment: Attachment | None
    ) -> None:
        self.id = run_id
        self.project: str = values["project"]
        # One mapping: Python looks attributes up faster in an object with at most 30.
        self._about = {name: values[name] for name in _DESCRIBING} | {"name": values["name"] or run_id}
        self.rank: int | None = ranks.get("rank")
        self.disabled = attachment is None
        self.finished = False
        self._ended = False  # finished, or the interpreter is shutting down
        self.dir = paths.run_dir(run_id, attachment.directory) if attachment else ""
        self._values = Values(self._report_fault)
        self._sections = RecordedSections(
            self._values, self._records_section, lambda record: self._write(frames.INFO, **record)
        )
        self._config = RecordedDict(self._sections.writer_of("config"), self._values.fault)
        self._summary = Summary(self._sections.writer_of("summary"), self._values.fault)
        self.step = 0
        self._serial = SerialExecutor()
        self._attachment = attachment
        self.opened_by = os.getpid() if attachment is None else attachment.opened_by
        self._journal: TrainingJournal | None = None
        if attachment is not None:
            writer = attachment.journal
            self._journal = TrainingJournal(run_id, attachment, self.opened_by, writer=writer)
        self._warned_finished = False
        self._finish_timeout_s: float = values["finish_timeout"]
        self._stop: StopHandler | None = None
        self._media: MediaRecorder | None = None
        self._media_lock = RLock()  # a signal handler may log too
        self._logged = LoggedSummary()
        self._watching: Watching | None = None
        self._alerted_s: dict[str, float] = {}

    def resume_at(self, step: int) -> None:
        """Continue the run that earlier processes logged; the next row has this step."""
        self.step = step
        self._about["resumed"] = True

    # -- process lifecycle

    def _at_exit(self) -> None:
        """Handle the interpreter's shutdown. The exit code is not known yet; the monitor observes it."""
        if os.getpid() == self.opened_by:
            failed = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
            code = exit_code_of(type(failed), failed) if failed is not None else None
            self._end(code, closing=True, error=failed)

    def _after_fork(self) -> None:
        """Release what belongs to the parent, in a forked child. The child may `log()` into its own file."""
        self._serial = SerialExecutor()  # the lock may be held by a thread that does not exist here
        self._logged = LoggedSummary()  # the parent records what it logged itself
        if self._attachment is not None:
            self._attachment.after_fork()
        if self._journal is not None:
            self._journal.forget()
        self._media_lock = RLock()
        if self._media is not None:
            self._media.forget()
            self._media = None

    def _end(self, exit_code: int | None, closing: bool, error: BaseException | None = None) -> None:
        """Report the end to the monitor.

        Args:
            error: the exception that ends the program, or the block of its `with` statement.
            closing: the interpreter is shutting down. Threads and exit handlers may still `log`.
        """
        if self._ended or os.getpid() != self.opened_by:
            return
        self._ended = True
        self.finished = not closing
        if self.disabled:
            return
        if self._watching is not None:
            self._watching.stop()
        if isinstance(error, Exception):
            self._write_exception(error)
        message: dict[str, object] = {"op": "finish", "pid": self.opened_by}
        message.update(exit_code=exit_code, closing=closing)
        if self._stop is not None:
            message["stopped"] = self._stop.requested
            self._stop.restore()
        if self._media is not None:
            self._media.save_rest(max(self.step - 1, 0), self._now_ms)
        self._sections.write_inner_changes({"config": self._config, "summary": self._summary})
        self._serial.run(lambda: self._close_journal(message))

    def _write_exception(self, error: Exception) -> None:
        from runvitals.sdk.uncaught import exception_event  # few runs fail

        self._write(frames.EVENT, **without_secrets(self._values.facts(exception_event(error))))

    def _close_journal(self, message: Mapping[str, object]) -> None:
        if self._journal is not None:
            self._write_logged_summary()
            self._count_faults()
        if self._attachment is not None:
            self._attachment.finish(message, self._finish_timeout_s)
        if self._journal is not None:
            self._journal.close()
        if self._media is not None:
            self._media.close()
        if not self.finished and self._journal is not None:
            self._journal, self._media = self._journal.successor(), None

    def _take_over(self) -> None:
        """Continue the run in a forked process that logs, if its opener has handed it over."""
        journal = None if self._journal is None else self._journal.writer
        if journal is not None and self._attachment is not None and self._attachment.take_over(journal):
            self.opened_by = os.getpid()

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            f"a run cannot be copied or passed to another process: call runvitals.init(id={self.id!r}) there"
        )

    # -- journal

    def _must_be_open(self, call: str) -> None:
        if self.finished:
            raise NotOpen(f"{call}(): run {self.id} is finished; call runvitals.init() for a new run")

    def _checked_step(self, step: Any) -> int:
        """Return a step as an int. Accepts any integer type, such as NumPy's."""
        if isinstance(step, bool) or not hasattr(step, "__index__"):
            raise TypeError(f"log(): step must be an integer, not {step!r}")
        number = index(step)
        if -STEP <= number <= STEP:
            return number
        self._values.fault(f"a step beyond {STEP}")
        return self.step

    def _records_section(self, section: str) -> bool:
        """Return whether changes of `config` or `summary` are recorded."""
        if self.finished and not self.disabled and not self._warned_finished:
            self._warned_finished = True
            notify(f"run {self.id} is finished; changes of its {section} are no longer recorded")
        return not self.disabled and not self.finished

    def _now_ms(self) -> int:
        """Return the time of a record; 0 when nothing is recorded."""
        return 0 if self._attachment is None else self._attachment.clock.now_ms()

    def _write(self, type: int, /, **value: Any) -> None:
        """Write a record. The values must be valid for it (see `Values`)."""
        if self.disabled:
            return
        payload = dumps({"t": self._now_ms(), **value})
        self._serial.run(lambda: self._record(type, payload))

    def _record_row(self, payload: bytes, row: dict[str, Any], now_ms: int) -> None:
        self._record(frames.HISTORY, payload)
        self._summary.update_logged(self._logged.add(row, now_ms, len(payload)))
        if self._logged.is_due(0 if self._journal is None else self._journal.segment):
            self._write_logged_summary()

    def _write_logged_summary(self) -> None:
        """Write the aggregates of logged metrics so far, so that listing runs need not read all rows."""
        record = self._logged.record(self._now_ms())
        if record is not None:
            self._record(frames.INFO, record)
            self._logged.note_written(len(record), 0 if self._journal is None else self._journal.segment)

    def _report_fault(self, fault: str) -> None:
        """Warn once that a value had to be changed to be recorded."""
        text = f"{fault}: recorded as far as possible"
        notify(f"run {self.id}: {text}")
        self._write(frames.EVENT, name="values_mended", level="warning", text=text, count=1)

    def _count_faults(self) -> None:
        faults = self._values.faults
        if any(count > 1 for count in faults.values()):
            text = "; ".join(f"{count} times {fault}" for fault, count in faults.items())
            event = {"name": "values_mended", "level": "warning", "count": sum(faults.values())}
            self._record(frames.EVENT, dumps({"t": self._now_ms(), **event, "text": text[:10_000]}))

    def _record(self, type: int, payload: bytes) -> None:
        assert self._journal is not None
        self._journal.record(type, payload)

    def _media_recorder(self) -> MediaRecorder:
        """Return the recorder of this process's media and saved files, created on first use."""
        with self._media_lock:
            if self._media is None:
                from runvitals.sdk.media.recorder import MediaRecorder

                assert self._journal is not None
                journal = self._journal.of_media()
                self._media = MediaRecorder(self.dir, journal, self._values.fault, self._serial.run)
            return self._media

    def _ensure_monitor(self) -> None:
        """Restart the monitor if it has died. One system call, 1 µs, when it has not."""
        if self._attachment is not None and not self._ended:
            is_opener = os.getpid() == self.opened_by
            self._serial.run(self._attachment.ensure_monitor if is_opener else self._take_over)
