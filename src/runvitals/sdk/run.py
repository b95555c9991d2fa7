"""A run as the training script sees it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from operator import index
from types import TracebackType
from typing import TYPE_CHECKING, Any

from runvitals.journal import frames, paths
from runvitals.journal.json_codec import dumps
from runvitals.journal.writer import Writer
from runvitals.model.limits import STEP
from runvitals.model.names import name_fault
from runvitals.model.summary import KINDS, Tally
from runvitals.sdk.attachment import MonitorLine
from runvitals.sdk.logged_values import Values
from runvitals.sdk.messages import tell
from runvitals.sdk.recorded_dict import Fields, Summary
from runvitals.sdk.serial_executor import Turns

if TYPE_CHECKING:
    from runvitals.sdk.stop_handler import StopHandler

_INTERRUPTED = 130  # Python ends by SIGINT itself then; this is a shell's word for it
_SIMPLE = frozenset((str, int, float, bool, type(None)))
LEVELS = ("info", "warning", "error")
# How much may be logged until the summary so far is written down. Readers of a list look at the last 64 KiB.
_SUMMARY_EVERY_BYTES = 48 * 1024
# … and at least so many times what writing it down takes, which is no more than this.
_SUMMARY_SHARE = 20
_SUMMARY_BYTES = 32 * 1024


class Run:
    """One run; made by `runvitals.init`.

    Attributes:
        id, project, name: what it is called.
        config: its hyper-parameters. Changes are written down.
        summary: its results: of each metric the last value, or what `define_metric` says, and what is set
            here by hand, which stays.
        dir: the folder its journal lies in.
        rank: of this process among the run's, or None.

    Example:
        >>> with runvitals.init(project="digits", config={"lr": 0.1}) as run:
        ...     for step in range(100):
        ...         run.log({"loss": 1 / (step + 1)})
    """

    def __init__(
        self, values: Mapping[str, Any], run_id: str, place: Mapping[str, Any], line: MonitorLine | None
    ) -> None:
        self.id = run_id
        self.project: str = values["project"]
        self.name: str = values["name"] or run_id
        self.rank: int | None = place.get("rank")
        self.disabled = line is None
        self.finished = False
        self.dir = paths.run_dir(run_id, line.directory) if line else ""
        self._values = Values(self._report_fault)
        self._config = Fields(
            lambda changes, removed: self._write_entries("config", changes, removed), self._values.fault
        )
        self._summary = Summary(
            lambda changes, removed: self._write_entries("summary", changes, removed), self._values.fault
        )
        self.step = 0  # the step a `log()` without one gets
        self._turns = Turns()
        self._line = line
        self.opened_by = os.getpid()
        self._journal = line.journal if line else None
        self._journal_pid = self.opened_by
        self._unwritable = False
        self._told_finished = False
        if self._journal is not None and self._journal.error is not None:
            self._tell_unwritable(self._journal)
        self._finish_timeout_s: float = values["finish_timeout"]
        self._stop: StopHandler | None = None
        self._inner: dict[tuple[str, str], Any] = {}  # lists and mappings in config and summary, as written
        self._tally = Tally()
        self._unsummed_bytes = 0  # logged since the summary was written down
        self._sum_up_at_bytes = _SUMMARY_EVERY_BYTES
        self._summed_segment = 0

    # -- what a script calls

    @property
    def config(self) -> Fields:
        """The hyper-parameters. A mapping that is assigned takes the place of all of them."""
        return self._config

    @config.setter
    def config(self, entries: Mapping[str, Any]) -> None:
        self._config.replace(entries)

    @property
    def summary(self) -> Summary:
        """The results. A mapping that is assigned takes the place of all of them."""
        return self._summary

    @summary.setter
    def summary(self, entries: Mapping[str, Any]) -> None:
        self._summary.replace(entries)

    def log(self, data: Mapping[str, Any], step: int | None = None) -> None:
        """Keep a row of values. One `write()`: about 10 µs; it neither waits for a disk nor for the monitor.

        What cannot be kept does not stop the training: a short text stands for it, the run says so once, and
        counts.

        Args:
            data: name → number, text, boolean, list; nested mappings become dotted names. Scalars of NumPy
                and PyTorch are fine; of an array of more than 32 elements the histogram is kept.
            step: position of the row; default: one more than the last row's. Rows of one step belong
                together.

        Raises:
            TypeError: `data` is no mapping, or `step` no whole number.
            RuntimeError: the run is finished.
        """
        if self.disabled:
            return
        self._must_be_open("log")
        row = self._values.row(data)
        step = self.step if step is None else self._whole(step)
        self.step = min(step + 1, STEP)
        now_ms = self._now_ms()
        payload = dumps({"t": now_ms, "step": step, "data": row})
        self._turns.do(lambda: self._record_row(payload, row, now_ms))
        self._mind_the_monitor()

    def define_metric(self, name: str, summary: str = "last") -> None:
        """Say what of a metric's values the summary has. It holds for what is logged from then on.

        Args:
            name: of the metric, or a pattern: `*` stands for any letters. A name goes before patterns, a
                longer pattern before shorter ones.
            summary: `last`, `min`, `max`, `mean`, or `none`.

        Raises:
            TypeError: a name that is no text.
            ValueError: an empty or overlong name, or another word for `summary`.

        Example:
            >>> run.define_metric("val/loss", summary="min")
            >>> run.define_metric("val/*", summary="max")
        """
        if not isinstance(name, str):
            raise TypeError(f"define_metric({type(name).__name__}): a name is a text")
        if fault := name_fault(name):
            raise ValueError(f"define_metric(): {fault}")
        if summary not in KINDS:
            raise ValueError(f"define_metric({name!r}, summary={summary!r}): it is one of {', '.join(KINDS)}")
        if self.disabled:
            return
        self._must_be_open("define_metric")
        definition = {name: {"summary": summary}}
        self._write(frames.INFO, metrics=definition)
        self._turns.do(lambda: self._tally.definitions.define(definition))

    def alert(self, title: str, text: str = "", level: str = "info") -> None:
        """Record that something happened which a person should know of.

        Args:
            level: `info`, `warning` or `error`.

        Raises:
            ValueError: another level.
        """
        if not isinstance(level, str) or level not in LEVELS:
            raise ValueError(
                f"alert(level={self._values.text(level)!r}): a level is one of {', '.join(LEVELS)}"
            )
        if self.disabled:
            return
        self._must_be_open("alert")
        title, text = self._values.text(title), self._values.text(text)
        event = {"name": "alert", "level": level, "title": title, "text": text}
        self._write(frames.EVENT, **_without_secrets(event))
        self._mind_the_monitor()

    def mark(self, text: str, **about: object) -> None:
        """Record where in the training it is: the begin of an epoch, a validation, a checkpoint.

        Args:
            text: what begins or happens here, for a person.
            about: numbers and texts that go with it.

        Example:
            >>> run.mark("epoch 3 begins", epoch=3)
        """
        if self.disabled:
            return
        self._must_be_open("mark")
        said = {"name": "marker", "level": "info", "text": self._values.text(text)}
        self._write(frames.EVENT, **_without_secrets(self._values.event(said, about)))
        self._mind_the_monitor()

    def on_stop(self, callback: Callable[[], object]) -> None:
        """Have a function called when somebody asks for the end of the run: no `KeyboardInterrupt` then.

        It is called once, in the main thread, at the first SIGINT: of a person who stops the run at the
        server, of Ctrl-C, of a scheduler. A second one raises `KeyboardInterrupt`, or does what else it did
        before. The run's state becomes `stopped`, however the process ends then, unless it crashes.

        The function runs between two instructions of whatever the training does: it had best note that the
        training shall end, which the training loop looks at. `log()` and `finish()` may be called in it.

        Args:
            callback: without arguments; of several, each is called. What it raises, the training gets.

        Raises:
            TypeError: it cannot be called.
            ValueError: another thread than the main one.
            RuntimeError: the run is finished.

        Example:
            >>> stopping = threading.Event()
            >>> run.on_stop(stopping.set)
            >>> while not stopping.is_set():
            ...     train_one_step()
            >>> save_checkpoint()
        """
        if not callable(callback):
            raise TypeError(f"on_stop({callback!r}): it takes a function without arguments")
        self._must_be_open("on_stop")
        if self._stop is None:
            from runvitals.sdk.stop_handler import StopHandler  # signal and threading, which few runs need

            self._stop = StopHandler(lambda: self.finished)
        self._stop.add(callback)

    def finish(self, exit_code: int | None = None) -> None:
        """End the run: waits for its last sample, at most `finish_timeout` seconds (typically 2 ms). Calling
        it again does nothing.

        Args:
            exit_code: 0 or None for success; anything else makes the run a failed one.
        """
        self._end(exit_code or 0, closing=False)

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish(0 if kind is None else _exit_code(kind, error))

    def __repr__(self) -> str:
        return f"<Run {self.id} of {self.project}{', finished' if self.finished else ''}>"

    # -- the process's life

    def at_exit(self) -> None:
        """The interpreter is ending. Its exit code is not known here, so the monitor is told to look for
        it.
        """
        if os.getpid() == self.opened_by:
            failed = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
            self._end(_exit_code(type(failed), failed) if failed else None, closing=True)

    def after_fork(self) -> None:
        """In a forked child: let go of what is the parent's. The child may still `log()`, into a file of its
        own.
        """
        self._turns = Turns()  # another thread of the parent may have been at it, and is not here to finish
        self._tally = Tally()  # what the parent has logged is in its own journal
        if self._line is not None:
            self._line.forget()
        if self._journal is not None:
            self._journal.forget()

    def _end(self, exit_code: int | None, closing: bool) -> None:
        if self.disabled or self.finished or os.getpid() != self.opened_by:
            return
        self.finished = True
        message: dict[str, object] = {
            "op": "finish",
            "pid": self.opened_by,
            "exit_code": exit_code,
            "closing": closing,
        }
        if self._stop is not None:
            message["stopped"] = self._stop.asked
            self._stop.restore()
        self._write_inner_changes()
        self._turns.do(lambda: self._say_finished(message))

    def _say_finished(self, message: Mapping[str, object]) -> None:
        if self._journal is not None:
            self._sum_up()
            self._count_faults()
        if self._line is not None:
            self._line.finish(message, self._finish_timeout_s)
        if self._journal is not None:
            self._report_loss(self._journal)
            self._journal.close()

    def _report_loss(self, journal: Writer) -> None:
        if journal.lost:
            tell(f"{journal.lost} records of run {self.id} could not be written: {journal.error}")

    # -- the journal

    def _must_be_open(self, call: str) -> None:
        if self.finished:
            raise RuntimeError(f"{call}(): run {self.id} is finished; runvitals.init() begins another")

    def _whole(self, step: Any) -> int:
        """A step as an int: Python's or NumPy's whole numbers."""
        if isinstance(step, bool) or not hasattr(step, "__index__"):
            raise TypeError(f"log(step={step!r}): a step is a whole number")
        number = index(step)
        if -STEP <= number <= STEP:
            return number
        self._values.fault(f"a step beyond {STEP}")
        return self.step

    def _write_entries(self, section: str, changes: Mapping[Any, Any], removed: Sequence[Any]) -> None:
        """Write what was set in one of the sections of facts, and what was taken out of it."""
        if self.disabled:
            return
        if self.finished:
            if not self._told_finished:
                self._told_finished = True
                tell(f"run {self.id} is finished: what is set in its {section} now is not kept")
            return
        record: dict[str, Any] = {}
        if removed:
            record["removed"] = {section: list(self._values.facts(dict.fromkeys(removed)))}
        if changes:
            facts = self._values.facts(changes)
            self._inner.update(
                ((section, name), value) for name, value in facts.items() if type(value) in (dict, list)
            )
            record[section] = _without_secrets(facts)
        self._write(frames.INFO, **record)

    def _write_inner_changes(self) -> None:
        """Write the entries within which something was changed since they were set: `config["net"]["lr"] = 1`
        is told to nobody.
        """
        for section, fields in (("config", self.config), ("summary", self.summary)):
            entries = list(fields.items())  # at once: another thread may change them
            inner = {name: value for name, value in entries if type(value) not in _SIMPLE}
            facts = Values(_shrug).facts(inner)
            changed = {
                name: value
                for name, value in facts.items()
                if self._inner.get((section, name), value) != value
            }
            if changed:
                self._write(frames.INFO, **{section: _without_secrets(changed)})

    def _now_ms(self) -> int:
        """The time of a record; 0 where nothing is recorded."""
        return 0 if self._line is None else self._line.clock.now_ms()

    def _write(self, type: int, /, **value: Any) -> None:
        """Write a record of values that it can hold."""
        if self.disabled:
            return
        payload = dumps({"t": self._now_ms(), **value})
        self._turns.do(lambda: self._record(type, payload))

    def _record_row(self, payload: bytes, row: dict[str, Any], now_ms: int) -> None:
        self._record(frames.HISTORY, payload)
        self._tally.add(row, now_ms)
        self._summary.note(self._tally.shown(row) if self._tally.definitions else row)
        self._unsummed_bytes += len(payload)
        begun = self._journal is not None and self._journal.segment != self._summed_segment
        if begun or self._unsummed_bytes > self._sum_up_at_bytes:
            self._sum_up()

    def _sum_up(self) -> None:
        """Write the summary so far, so that who lists runs need not read all rows."""
        if not self._unsummed_bytes:
            return
        payload = dumps({"t": self._now_ms(), "logged": self._tally.state(_SUMMARY_BYTES)})
        self._record(frames.INFO, payload)
        self._summed_segment = 0 if self._journal is None else self._journal.segment
        self._unsummed_bytes = 0
        self._sum_up_at_bytes = max(_SUMMARY_EVERY_BYTES, _SUMMARY_SHARE * len(payload))

    def _report_fault(self, fault: str) -> None:
        """Say once that something could not be kept as it was."""
        text = f"{fault}: it is kept as well as can be"
        tell(f"run {self.id} was given {text}")
        self._write(frames.EVENT, name="values_mended", level="warning", text=text, count=1)

    def _count_faults(self) -> None:
        faults = self._values.faults
        if any(count > 1 for count in faults.values()):
            text = "; ".join(f"{count} times {fault}" for fault, count in faults.items())
            event = {"name": "values_mended", "level": "warning", "count": sum(faults.values())}
            self._record(frames.EVENT, dumps({"t": self._now_ms(), **event, "text": text[:10_000]}))

    def _record(self, type: int, payload: bytes) -> None:
        journal = self._journal
        if journal is None or self._journal_pid != os.getpid():
            journal = self._reopen()
        journal.record(type, payload)
        if not journal.lost:
            self._unwritable = False
        elif not self._unwritable:
            self._tell_unwritable(journal)

    def _tell_unwritable(self, journal: Writer) -> None:
        self._unwritable = True
        tell(f"run {self.id} cannot be written ({journal.error}); training goes on, the loss is counted")

    def _reopen(self) -> Writer:
        """A journal file of this forked process's own."""
        assert self._line is not None
        self._journal = self._line.new_journal({"forked_from": self.opened_by})
        self._journal_pid = os.getpid()
        return self._journal

    def _mind_the_monitor(self) -> None:
        """Start another monitor if ours has died. One system call, 1 µs, when it has not."""
        if self._line is not None and self._journal_pid == self.opened_by:
            self._turns.do(self._line.mind)


def _without_secrets(facts: dict[str, Any]) -> dict[str, Any]:
    from runvitals.environment import redaction  # only where there is something to say

    kept: dict[str, Any] = redaction.entries(facts)
    return kept


def _shrug(fault: str) -> None:
    """It was told when the entry was set."""


def _exit_code(kind: type[BaseException], error: BaseException | None) -> int:
    """The exit code Python would end with if this exception went on."""
    if issubclass(kind, KeyboardInterrupt):
        return _INTERRUPTED
    if not issubclass(kind, SystemExit):
        return 1
    code = getattr(error, "code", None)
    if code is None:
        return 0
    return code if isinstance(code, int) else 1
