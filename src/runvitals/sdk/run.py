"""A run as the training script sees it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from operator import index
from types import TracebackType
from typing import TYPE_CHECKING, Any

from runvitals.journal import frames, paths
from runvitals.journal.jsontext import dumps
from runvitals.journal.writer import Writer
from runvitals.sdk.console import tell
from runvitals.sdk.line import MonitorLine
from runvitals.sdk.turns import Turns

if TYPE_CHECKING:
    from runvitals.sdk.stopping import StopHandler

_INTERRUPTED = 130  # Python ends by SIGINT itself then; this is a shell's word for it
LEVELS = ("info", "warning", "error")


class Fields(dict[str, Any]):
    """A dictionary whose entries are attributes too, and whose changes are written to the journal.

    Example:
        >>> run.config["lr"] = 0.1
        >>> run.config.lr
        0.1
    """

    def __init__(self, write: Callable[[dict[str, Any]], None]) -> None:
        super().__init__()
        self.__dict__["_write"] = write

    def __setitem__(self, name: str, value: Any) -> None:
        self.update({name: value})

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(
                f"there is no {name!r} here; there are {', '.join(map(str, self)) or 'none yet'}"
            ) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Set several entries, and write them as one record."""
        changes = dict(*args, **kwargs)
        if changes:
            self._write(changes)
            super().update(changes)

    def note(self, values: Mapping[str, Any]) -> None:
        """Set entries that the journal already holds in another form."""
        super().update(values)


class Run:
    """One run; made by `runvitals.init`.

    Attributes:
        id, project, name: what it is called.
        config: its hyper-parameters; `summary`: its results. Both write themselves down when changed.
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
        self.config = Fields(lambda changes: self._write(frames.INFO, config=changes))
        self.summary = Fields(lambda changes: self._write(frames.INFO, summary=changes))
        self.step = 0  # the step a `log()` without one gets
        self._turns = Turns()
        self._line = line
        self.opened_by = os.getpid()
        self._journal = line.journal if line else None
        self._journal_pid = self.opened_by
        self._finish_timeout_s: float = values["finish_timeout"]
        self._stop: StopHandler | None = None

    # -- what a script calls

    def log(self, data: Mapping[str, Any], step: int | None = None) -> None:
        """Keep a row of values. One `write()`: about 10 µs; it neither waits for a disk nor for the monitor.

        Args:
            data: name → number, text, boolean, list; nested mappings become dotted names. Scalars of NumPy
                and PyTorch are fine.
            step: position of the row; default: one more than the last row's. Rows of one step belong
                together.

        Raises:
            TypeError: `data` is no mapping with text keys, or `step` no whole number.
            RuntimeError: the run is finished.
        """
        if self.disabled:
            return
        self._must_be_open("log")
        row = _flat(data)
        step = self.step if step is None else _whole(step)
        self.step = step + 1
        self._write(frames.HISTORY, step=step, data=row)
        self.summary.note(row)
        self._mind_the_monitor()

    def alert(self, title: str, text: str = "", level: str = "info") -> None:
        """Record that something happened which a person should know of.

        Args:
            level: `info`, `warning` or `error`.

        Raises:
            ValueError: another level.
        """
        if level not in LEVELS:
            raise ValueError(f"alert(level={level!r}): a level is one of {', '.join(LEVELS)}")
        if self.disabled:
            return
        self._must_be_open("alert")
        self._write(frames.EVENT, name="alert", level=level, title=title, text=text)
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
        fields = {**_flat(about), "name": "marker", "level": "info", "text": text}
        self._write(frames.EVENT, **fields)
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
            from runvitals.sdk.stopping import StopHandler  # signal and threading, which few runs need

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
        self._turns.do(lambda: self._say_finished(message))

    def _say_finished(self, message: Mapping[str, object]) -> None:
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

    def _write(self, type: int, **value: Any) -> None:
        if self.disabled:
            return
        payload = dumps({"t": time.time_ns() // 1_000_000, **value})
        self._turns.do(lambda: self._record(type, payload))

    def _record(self, type: int, payload: bytes) -> None:
        journal = self._journal
        if journal is None or self._journal_pid != os.getpid():
            journal = self._reopen()
        lost = journal.lost
        journal.record(type, payload)
        if journal.lost and not lost:
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


def _flat(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    if not isinstance(data, Mapping):
        raise TypeError(f"log({data!r}): it takes a mapping of names to values")
    row: dict[str, Any] = {}
    for name, value in data.items():
        if not isinstance(name, str):
            raise TypeError(f"log(): the name {name!r} is not a text")
        if isinstance(value, Mapping):
            row.update(_flat(value, f"{prefix}{name}."))
        else:
            row[prefix + name] = value
    return row


def _whole(step: Any) -> int:
    """A step as an int: Python's or NumPy's whole numbers."""
    if isinstance(step, bool) or not hasattr(step, "__index__"):
        raise TypeError(f"log(step={step!r}): a step is a whole number")
    return index(step)


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
