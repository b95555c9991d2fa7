"""The run object that a training script uses."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from runvitals.base.json_codec import dumps
from runvitals.journal import frames
from runvitals.model.limits import STEP
from runvitals.monitoring.settings.messages import notify
from runvitals.monitoring.settings.name_settings import display_name
from runvitals.sdk.logged_values import without_secrets
from runvitals.sdk.recorded_dict import RecordedDict, Summary
from runvitals.sdk.run_arguments import exit_code_of, metric_definition, valid_exit_code, wait_seconds
from runvitals.sdk.run_artifacts import RunArtifacts

if TYPE_CHECKING:
    from datetime import timedelta

    from runvitals.model.logged_media import SavedFile

LEVELS = ("info", "warning", "error")
_LEVELS = {**{level: level for level in LEVELS}, "warn": "warning"}


class Run(RunArtifacts):
    """A run, created by `runvitals.init`.

    Attributes:
        id: run id, eight letters and digits by default.
        project: project of the run.
        name: display name. Assigning it renames the run.
        config: hyper-parameters. Changes are recorded.
        summary: results: the last value of each logged metric, or the aggregate chosen with
            `define_metric`. Values set by hand take precedence and are kept.
        dir: folder of the run's journal; "" if the run is not recorded.
        rank: rank of this process within the run, or None.
        step: the step of the next `log()` call that does not set one.
        finished: whether `finish()` was called.
        disabled: whether nothing is recorded: `mode` is `disabled`, or no folder is writable.

    The names that it shares with W&B's run, and what differs: `docs/reference/wandb-compatibility.md`.

    Example:
        >>> with runvitals.init(project="digits", config={"lr": 0.1}) as run:
        ...     for step in range(100):
        ...         run.log({"loss": 1 / (step + 1)})
    """

    @property
    def name(self) -> str:
        """The display name. Assigning it renames the run."""
        name: str = self._about["name"]
        return name

    @name.setter
    def name(self, name: str) -> None:
        self._describe(name=display_name(self._values.text(name)) or self.id)

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags. Assigning a sequence replaces them."""
        return tuple(self._about["tags"])

    @tags.setter
    def tags(self, tags: Sequence[str]) -> None:
        self._describe(tags=self._values.tags(tags))

    @property
    def notes(self) -> str | None:
        """The notes. Assigning a text replaces them."""
        notes: str | None = self._about["notes"]
        return notes

    @notes.setter
    def notes(self, notes: str) -> None:
        self._describe(notes=self._values.text(notes))

    @property
    def entity(self) -> str | None:
        """The team or user that was set for the run."""
        entity: str | None = self._about["entity"]
        return entity

    @property
    def group(self) -> str | None:
        """The group that was set for the run."""
        group: str | None = self._about["group"]
        return group

    @property
    def job_type(self) -> str | None:
        """The kind of run that was set."""
        job_type: str | None = self._about["job_type"]
        return job_type

    @property
    def resumed(self) -> bool:
        """Whether the run existed before this process opened it."""
        return bool(self._about.get("resumed"))

    @property
    def offline(self) -> bool:
        """Whether `mode` keeps the run on this machine."""
        return bool(self._about["mode"] != "online")

    @property
    def url(self) -> str | None:
        """The run's page on the server that it is delivered to; None without one."""
        server = None if self.disabled or self.offline else self._about["server"]
        return None if server is None else f"{server}/runs/{self.id}"

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

    def log(
        self, data: Mapping[str, Any] | None = None, step: int | None = None, commit: bool | None = None
    ) -> None:
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
            commit: False if the next `log()` without a step has the same step.

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
        row = {} if data is None else self._values.row(data, media)
        step = self.step if step is None else self._checked_step(step)
        self.step = step if commit is False else min(step + 1, STEP)
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
        **others: Any,
    ) -> None:
        """Choose how a metric is aggregated and shown.

        Applies to values logged from now on, and replaces an earlier choice for the same name.

        A metric is shown as its own definition says, and in what that leaves out as the longest pattern that
        matches.

        Args:
            name: a metric name, or a pattern in which `*` matches any characters. An exact name takes
                precedence over patterns, and a longer pattern over a shorter one.
            summary: `last`, `min`, `max`, `mean`, or `none`; `best` is `max` if the goal is `maximize`,
                else `min`.
            x: the logged metric that its charts have as their x-axis, instead of the step.
            hidden: whether it has no chart unless somebody asks for it. Default: as a pattern says.
            goal: `minimize` or `maximize`: which values are better, where runs are compared.
            others: `step_metric`, W&B's name for `x`, and what else W&B's function takes.

        Raises:
            TypeError: a name is not a string, or an unknown argument.
            ValueError: a name is empty or too long, or `summary` or `goal` is unknown.
            RuntimeError: the run is finished.

        Example:
            >>> run.define_metric("val/*", summary="min", x="epoch", goal="minimize")
        """
        if others:
            from runvitals.monitoring.settings import wandb_arguments  # few scripts use W&B's names

            x = wandb_arguments.step_metric(x, others)
        definition = metric_definition(name, summary, x, hidden, goal)
        if self.disabled:
            return
        self._must_be_open("define_metric")
        self._write(frames.INFO, metrics=definition)
        self._serial.run(lambda: self._logged.define(definition))

    def save(
        self,
        pattern: str | os.PathLike[str] | None = None,
        base: str | os.PathLike[str] | None = None,
        *,
        base_path: str | os.PathLike[str] | None = None,
        policy: str = "now",
        glob: str | bool = True,
        glob_str: str | None = None,
    ) -> list[str]:
        """Record copies of files, as they are now: checkpoints, configurations, results.

        Args:
            pattern: a path; `*`, `?` and `[…]` match within a name, `**` any folders.
            base: the files are named relative to this folder. Default: the working directory if it contains
                them, otherwise the last folder of the pattern before a wildcard.
            base_path, glob, glob_str: W&B's names for `base` and `pattern`; `glob=False`: the pattern is the
                name of one file.
            policy: `now`; or `end`: when the run is finished. W&B's `live` saves them now and at the end.

        Returns:
            The names of the files that were saved now. Files that cannot be read are left out, counted, and a
            warning is printed once.

        Raises:
            TypeError: no pattern.
            ValueError: `base` does not contain the files, or the policy is unknown.
            RuntimeError: the run is finished.

        Example:
            >>> run.save("checkpoints/*.pt")  # returns ['checkpoints/1.pt']
        """
        chosen = pattern or glob_str or (glob if isinstance(glob, str) else None)
        if chosen is None:
            raise TypeError("save(): expected a pattern: the path of a file, or with * and ?")
        if glob is False:
            from glob import escape

            chosen = escape(os.fspath(chosen))
        if policy not in ("now", "live", "end"):
            raise ValueError(f"save(): unknown policy {policy!r}; expected now, end or live")
        if self.disabled:
            return []
        self._must_be_open("save")
        folder = base if base_path is None else base_path
        base_text = None if folder is None else os.fspath(folder)
        recorder = self._media_recorder()
        if policy != "now":
            recorder.save_later(os.fspath(chosen), base_text)
        if policy == "end":
            return []
        return recorder.save(os.fspath(chosen), base_text, max(self.step - 1, 0), self._now_ms)

    def files(self) -> list[SavedFile]:
        """Return the files saved so far by all processes of the run on this machine, by name."""
        if self.disabled:
            return []
        from runvitals.readers.journals.media import saved_files  # few runs need it

        return saved_files(self.dir)

    def alert(
        self, title: str, text: str = "", level: str = "info", wait_duration: float | timedelta | None = None
    ) -> None:
        """Record an event that a user should notice.

        Args:
            title: one line.
            text: details.
            level: `info`, `warning` or `error`; also as W&B spells them: `INFO`, `WARN`, `ERROR`.
            wait_duration: seconds in which another alert with this title is left out. Without it, all are
                recorded, and a server tells its users one a minute.

        Raises:
            TypeError: `wait_duration` is neither a number nor a timedelta.
            ValueError: unknown level.
            RuntimeError: the run is finished.

        Example:
            >>> run.alert("loss diverged", f"loss {loss} at step {step}", level="error")
        """
        severity = _LEVELS.get(level.lower()) if isinstance(level, str) else None
        if severity is None:
            raise ValueError(
                f"alert(): unknown level {self._values.text(level)!r}; expected one of {', '.join(LEVELS)}"
            )
        if self.disabled:
            return
        self._must_be_open("alert")
        title, text = self._values.text(title), self._values.text(text)
        wait_s = None if wait_duration is None else wait_seconds(wait_duration)
        if wait_s and not self._may_alert(title, wait_s):
            return
        event: dict[str, Any] = {"name": "alert", "level": severity, "title": title, "text": text}
        if wait_s is not None:
            event["wait_s"] = wait_s
        self._write(frames.EVENT, **without_secrets(event))
        self._ensure_monitor()

    def _may_alert(self, title: str, wait_s: float) -> bool:
        """Return whether an alert with this title is due again."""
        now_s, last_s = time.monotonic(), self._alerted_s.get(title)
        if last_s is not None and now_s - last_s < wait_s:
            return False
        self._alerted_s[title] = now_s
        return True

    def watch(
        self,
        models: Any,
        criterion: Any = None,
        log: str | None = "gradients",
        log_freq: int = 1000,
        idx: int | None = None,
        log_graph: bool = False,
    ) -> None:
        """Log histograms of the gradients and parameters of PyTorch models, by their hooks.

        A logged pass copies up to 10,000 numbers of each tensor; the others are only counted.

        Args:
            models: a module, or several.
            criterion: ignored; W&B's function has it.
            log: `gradients`, `parameters`, `all`, or None for neither.
            log_freq: log every so many passes.
            idx: added to the names of several models; default: their position.
            log_graph: not supported.

        Raises:
            TypeError: not a module of PyTorch.
            ValueError: an unknown `log`, or a model that is already watched.
            NotImplementedError: `log_graph`.
            RuntimeError: the run is finished.

        Example:
            >>> run.watch(model, log="all", log_freq=100)  # logs gradients/<name> and parameters/<name>
        """
        from runvitals.sdk.watching import Watching  # few runs need it

        self._must_be_open("watch")
        if log_graph:
            raise NotImplementedError("watch(): log_graph is not supported; log a figure of the graph")
        if self._watching is None:
            self._watching = Watching(self.log)
        if not self.disabled:
            self._watching.add(models, log, log_freq, idx)

    def unwatch(self, models: Any = None) -> None:
        """Remove the hooks of `watch` from these models, or from all."""
        if self._watching is not None:
            self._watching.stop(models)

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

    def finish(self, exit_code: int | None = None, quiet: bool | None = None) -> None:
        """Finish the run, and wait for its last sample and for delivery. A second call has no effect.

        The last sample takes typically 2 ms and at most `finish_timeout` seconds, delivery at most
        `delivery_timeout` seconds.

        Runs are also finished when the process exits, and by the `with` statement.

        Args:
            exit_code: 0 or None for success; any other value marks the run as failed.
            quiet: ignored, as W&B's function has it; the setting `quiet` decides what is printed.

        Raises:
            TypeError: `exit_code` is not an integer.
        """
        self._end(valid_exit_code(exit_code), closing=False)

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(0 if kind is None else exit_code_of(kind, error), closing=False, error=error)

    def _repr_html_(self) -> str | None:
        """Return the run for a notebook, as its journal has it now; None if there is none."""
        if self.disabled:
            return None
        from runvitals.readers.journals.run_handle import open_run

        data_folder = os.path.dirname(os.path.dirname(self.dir))
        return open_run(self.id, data_folder).html({"open": self.url} if self.url else {})

    def __repr__(self) -> str:
        return f"<Run {self.id} of {self.project}{', finished' if self.finished else ''}>"

    def _describe(self, **about: Any) -> None:
        """Set and record the run's new name, tags or notes."""
        self._about.update(about)
        if self.disabled:
            return
        if self.finished:
            notify(f"run {self.id} is finished; changes of its description are no longer recorded")
            return
        self._write(frames.INFO, run=without_secrets(about))
