"""The run object that a training script uses."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from operator import index
from threading import RLock
from types import TracebackType
from typing import TYPE_CHECKING, Any

from runvitals.journal import frames, paths
from runvitals.journal.json_codec import dumps
from runvitals.model.limits import STEP
from runvitals.sdk.attachment import Attachment
from runvitals.sdk.exit_code import exit_code_of
from runvitals.sdk.logged_summary import LoggedSummary
from runvitals.sdk.logged_values import Values, without_secrets
from runvitals.sdk.messages import notify
from runvitals.sdk.metric_definition import metric_definition
from runvitals.sdk.recorded_dict import RecordedDict, Summary
from runvitals.sdk.recorded_sections import RecordedSections
from runvitals.sdk.serial_executor import SerialExecutor
from runvitals.sdk.training_journal import TrainingJournal

if TYPE_CHECKING:
    from runvitals.model.logged_media import SavedFile
    from runvitals.sdk.media.recorder import MediaRecorder
    from runvitals.sdk.stop_handler import StopHandler

LEVELS = ("info", "warning", "error")


class Run:
    """A run, created by `runvitals.init`.

    Attributes:
        id: run id, eight letters and digits by default.
        project: project of the run.
        name: display name.
        config: hyper-parameters. Changes are recorded.
        summary: results: the last value of each logged metric, or the aggregate chosen with
            `define_metric`. Values set by hand take precedence and are kept.
        dir: folder of the run's journal; "" if the run is not recorded.
        rank: rank of this process within the run, or None.
        step: the step of the next `log()` call that does not set one.
        finished: whether `finish()` was called.
        disabled: whether nothing is recorded: `mode` is `disabled`, or no folder is writable.

    Example:
        >>> with runvitals.init(project="digits", config={"lr": 0.1}) as run:
        ...     for step in range(100):
        ...         run.log({"loss": 1 / (step + 1)})
    """

    def __init__(
        self, values: Mapping[str, Any], run_id: str, ranks: Mapping[str, Any], attachment: Attachment | None
    ) -> None:
        self.id = run_id
        self.project: str = values["project"]
        self.name: str = values["name"] or run_id
        self.rank: int | None = ranks.get("rank")
        self.disabled = attachment is None
        self.finished = False
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
        self.opened_by = os.getpid()
        self._journal = TrainingJournal(run_id, attachment, self.opened_by) if attachment else None
        self._warned_finished = False
        self._finish_timeout_s: float = values["finish_timeout"]
        self._stop: StopHandler | None = None
        self._media: MediaRecorder | None = None
        self._media_lock = RLock()  # a signal handler may log too
        self._logged = LoggedSummary()

    # -- public API

    @property
    def config(self) -> RecordedDict:
        """The hyper-parameters. Assigning a mapping replaces all of them.

        Example:
            >>> run.config.update(lr=0.1, layers=[64, 64])
            >>> run.config.lr
            0.1
        """
        return self._config

    @config.setter
    def config(self, entries: Mapping[str, Any]) -> None:
        self._config.replace(entries)

    @property
    def summary(self) -> Summary:
        """The results. Assigning a mapping replaces all of them.

        Example:
            >>> run.summary["best_epoch"] = 7
        """
        return self._summary

    @summary.setter
    def summary(self, entries: Mapping[str, Any]) -> None:
        self._summary.replace(entries)

    def log(self, data: Mapping[str, Any], step: int | None = None) -> None:
        """Log a row of values. Costs one `write()`, about 10 µs; never waits for the disk or the monitor.

        A value that cannot be recorded does not stop the training: a short text replaces it, a warning is
        printed once, and the replacements are counted.

        Args:
            data: maps names to numbers, strings, booleans or lists. Nested mappings become dotted names.
                NumPy and PyTorch scalars are converted; arrays of more than 32 elements are recorded as a
                histogram. Images, tables, audio, videos, HTML and figures (see `runvitals.Image` …), alone or
                in a list, are stored as files first, which takes about as long as encoding them.
            step: position of the row; default: the last step plus one. Rows with the same step belong
                together.

        Raises:
            TypeError: `data` is not a mapping, or `step` is not an integer.
            RuntimeError: the run is finished.

        Example:
            >>> run.log({"train": {"loss": 0.5}, "lr": 0.1}, step=100)  # records train.loss and lr
        """
        if self.disabled:
            return
        self._must_be_open("log")
        media: list[tuple[str, object]] = []
        row = self._values.row(data, media)
        step = self.step if step is None else self._checked_step(step)
        self.step = min(step + 1, STEP)
        now_ms = self._now_ms()
        if row or not media:
            payload = dumps({"t": now_ms, "step": step, "data": row})
            self._serial.run(lambda: self._record_row(payload, row, now_ms))
        for name, value in media:
            self._media_recorder().log(name, value, step, now_ms)
        self._ensure_monitor()

    def define_metric(
        self,
        name: str,
        summary: str = "last",
        *,
        x: str | None = None,
        hidden: bool | None = None,
        goal: str | None = None,
    ) -> None:
        """Choose how a metric is aggregated and shown. Applies to values logged from now on, and replaces an
        earlier choice for the same name.

        A metric is shown as its own definition says, and in what that leaves out as the longest pattern that
        matches.

        Args:
            name: a metric name, or a pattern in which `*` matches any characters. An exact name takes
                precedence over patterns, and a longer pattern over a shorter one.
            summary: `last`, `min`, `max`, `mean`, or `none`.
            x: the logged metric that its charts have as their x-axis, instead of the step.
            hidden: whether it has no chart unless somebody asks for it. Default: as a pattern says.
            goal: `minimize` or `maximize`: which values are better, where runs are compared.

        Raises:
            TypeError: a name is not a string.
            ValueError: a name is empty or too long, or `summary` or `goal` is unknown.
            RuntimeError: the run is finished.

        Example:
            >>> run.define_metric("val/loss", summary="min", goal="minimize")
            >>> run.define_metric("val/*", x="epoch")
        """
        definition = metric_definition(name, summary, x, hidden, goal)
        if self.disabled:
            return
        self._must_be_open("define_metric")
        self._write(frames.INFO, metrics=definition)
        self._serial.run(lambda: self._logged.define(definition))

    def save(self, pattern: str, base: str | None = None) -> list[str]:
        """Record copies of files, as they are now: checkpoints, configurations, results.

        Args:
            pattern: a path; `*`, `?` and `[…]` match within a name, `**` any folders.
            base: the files are named relative to this folder. Default: the working directory if it contains
                them, otherwise the last folder of the pattern before a wildcard.

        Returns:
            The names of the files that were saved. Files that cannot be read are left out, counted, and a
            warning is printed once.

        Raises:
            ValueError: `base` does not contain the files.
            RuntimeError: the run is finished.

        Example:
            >>> run.save("checkpoints/*.pt")
            ['checkpoints/1.pt']
        """
        if self.disabled:
            return []
        self._must_be_open("save")
        return self._media_recorder().save(os.fspath(pattern), base, max(self.step - 1, 0), self._now_ms)

    def files(self) -> list[SavedFile]:
        """The files saved so far by all processes of the run on this machine, by name."""
        if self.disabled:
            return []
        from runvitals.query.media import saved_files  # few runs need it

        return saved_files(self.dir)

    def alert(self, title: str, text: str = "", level: str = "info") -> None:
        """Record an event that a user should notice.

        Args:
            title: one line.
            text: details.
            level: `info`, `warning` or `error`.

        Raises:
            ValueError: unknown level.
            RuntimeError: the run is finished.

        Example:
            >>> run.alert("loss diverged", f"loss {loss} at step {step}", level="error")
        """
        if not isinstance(level, str) or level not in LEVELS:
            raise ValueError(
                f"alert(): unknown level {self._values.text(level)!r}; expected one of {', '.join(LEVELS)}"
            )
        if self.disabled:
            return
        self._must_be_open("alert")
        title, text = self._values.text(title), self._values.text(text)
        event = {"name": "alert", "level": level, "title": title, "text": text}
        self._write(frames.EVENT, **without_secrets(event))
        self._ensure_monitor()

    def mark(self, text: str, **about: object) -> None:
        """Record a marker: the start of an epoch, a validation, a checkpoint.

        Args:
            text: what starts or happens here.
            about: additional values to record with the marker.

        Raises:
            RuntimeError: the run is finished.

        Example:
            >>> run.mark("epoch 3 begins", epoch=3)
        """
        if self.disabled:
            return
        self._must_be_open("mark")
        marker = {"name": "marker", "level": "info", "text": self._values.text(text)}
        self._write(frames.EVENT, **without_secrets(self._values.event(marker, about)))
        self._ensure_monitor()

    def on_stop(self, callback: Callable[[], object]) -> None:
        """Register a function to call when the run is asked to stop, instead of raising `KeyboardInterrupt`.

        It is called once, in the main thread, on the first SIGINT: from a user who stops the run at the
        server, from Ctrl-C, or from a scheduler. A second SIGINT raises `KeyboardInterrupt`, or runs the
        handler that was installed before. The run's state becomes `stopped` however the process then ends,
        unless it crashes.

        The function runs between two bytecode instructions of the training, like any Python signal handler.
        It should only set a flag that the training loop checks. It may call `log()` and `finish()`.

        Args:
            callback: takes no arguments. All registered callbacks are called. Their exceptions propagate
                into the training.

        Raises:
            TypeError: `callback` is not callable.
            ValueError: not called in the main thread.
            RuntimeError: the run is finished.

        Example:
            >>> stopping = threading.Event()
            >>> run.on_stop(stopping.set)
            >>> while not stopping.is_set():
            ...     train_one_step()
            >>> save_checkpoint()
        """
        if not callable(callback):
            raise TypeError(f"on_stop(): expected a function without arguments, not {callback!r}")
        self._must_be_open("on_stop")
        if self._stop is None:
            from runvitals.sdk.stop_handler import StopHandler  # few runs need it, nor signal and threading

            self._stop = StopHandler(lambda: self.finished)
        self._stop.add(callback)

    def finish(self, exit_code: int | None = None) -> None:
        """Finish the run. Waits for its last sample, typically 2 ms and at most `finish_timeout` seconds,
        then at most `delivery_timeout` seconds for delivery. Calling it again has no effect.

        Runs are also finished when the process exits, and by the `with` statement.

        Args:
            exit_code: 0 or None for success; any other value marks the run as failed.
        """
        self._end(exit_code or 0, closing=False)

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish(0 if kind is None else exit_code_of(kind, error))

    def __repr__(self) -> str:
        return f"<Run {self.id} of {self.project}{', finished' if self.finished else ''}>"

    # -- process lifecycle

    def _at_exit(self) -> None:
        """Handle the interpreter's shutdown. The exit code is not known yet; the monitor observes it."""
        if os.getpid() == self.opened_by:
            failed = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
            self._end(exit_code_of(type(failed), failed) if failed else None, closing=True)

    def _after_fork(self) -> None:
        """In a forked child: release what belongs to the parent. The child may `log()` into its own file."""
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

    def _end(self, exit_code: int | None, closing: bool) -> None:
        if self.disabled or self.finished or os.getpid() != self.opened_by:
            return
        self.finished = True
        message: dict[str, object] = {"op": "finish", "pid": self.opened_by}
        message.update(exit_code=exit_code, closing=closing)
        if self._stop is not None:
            message["stopped"] = self._stop.requested
            self._stop.restore()
        self._sections.write_inner_changes({"config": self._config, "summary": self._summary})
        self._serial.run(lambda: self._close_journal(message))

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

    # -- journal

    def _must_be_open(self, call: str) -> None:
        if self.finished:
            raise RuntimeError(f"{call}(): run {self.id} is finished; call runvitals.init() for a new run")

    def _checked_step(self, step: Any) -> int:
        """A step as an int. Accepts any integer type, such as NumPy's."""
        if isinstance(step, bool) or not hasattr(step, "__index__"):
            raise TypeError(f"log(): step must be an integer, not {step!r}")
        number = index(step)
        if -STEP <= number <= STEP:
            return number
        self._values.fault(f"a step beyond {STEP}")
        return self.step

    def _records_section(self, section: str) -> bool:
        """Whether changes of `config` or `summary` are recorded."""
        if self.finished and not self.disabled and not self._warned_finished:
            self._warned_finished = True
            notify(f"run {self.id} is finished; changes of its {section} are no longer recorded")
        return not self.disabled and not self.finished

    def _now_ms(self) -> int:
        """The time of a record; 0 when nothing is recorded."""
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
            self._logged.written(len(record), 0 if self._journal is None else self._journal.segment)

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
        """What records media and saved files of this process. Few runs have any."""
        with self._media_lock:
            if self._media is None:
                from runvitals.sdk.media.recorder import MediaRecorder

                assert self._journal is not None
                journal = self._journal.of_media()
                self._media = MediaRecorder(self.dir, journal, self._values.fault, self._serial.run)
            return self._media

    def _ensure_monitor(self) -> None:
        """Restart the monitor if it has died. One system call, 1 µs, when it has not."""
        if self._attachment is not None and os.getpid() == self.opened_by:
            self._serial.run(self._attachment.ensure_monitor)
