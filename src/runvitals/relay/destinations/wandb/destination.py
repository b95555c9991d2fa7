"""The destination `wandb:ENTITY/PROJECT`: a run in W&B, over HTTP or as files for `wandb sync`.

If the training itself uses W&B, our samples become the system metrics of its own run, provided that W&B's are
disabled (`wandb.init(settings=wandb.Settings(x_disable_stats=True))`) and `wandb.init()` is called before
`runvitals.init()`. Otherwise a new W&B run is created.

Exactly once: W&B writes lines at their line numbers, so repeating them changes nothing; files work the same
way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from runvitals.journal.paths import safe_name
from runvitals.readers.journals.history import leaves
from runvitals.relay.batch import LIFECYCLE, Batch, Note
from runvitals.relay.destination import Context, Destination, Gone
from runvitals.relay.destinations.wandb.account import WandbAddress
from runvitals.relay.destinations.wandb.lines import RunUpdate, console_lines, rows, sample
from runvitals.relay.destinations.wandb.offline import OfflineRun
from runvitals.relay.destinations.wandb.online import OnlineRun
from runvitals.relay.engine.exactly_once import all_or_nothing

_TRAIN = "train"


class RunTarget(Protocol):
    """A run at a W&B server, or in a file."""

    def write(self, batch: Batch, content: RunUpdate) -> None:
        """Write the update."""

    def heartbeat(self) -> None:
        """Send a heartbeat."""

    def end(self, exit_code: int, ended_ms: int) -> None:
        """Mark the run as finished."""

    def close(self) -> None:
        """Close connections."""


class WandbDestination(Destination):
    """Delivers a run to W&B.

    Args:
        address: see `WandbAddress`.
        context: `state` holds the next line numbers, the summary, and how the run ended.

    Raises:
        ValueError: invalid address.
    """

    name = "wandb"
    interval_s = 15.0
    heartbeat_s = 30.0

    def __init__(self, address: str, context: Context) -> None:
        self._address = WandbAddress.read(address, context.environ)
        self._context = context
        self._state = context.state
        self._target: RunTarget | None = None

    def deliver(self, batch: Batch) -> None:
        """Deliver a batch.

        Raises:
            Retry, Rejected: see `Destination`.
            Gone: the training's own W&B run has system metrics already.
        """
        with all_or_nothing(self._state):
            self._write(batch)

    def _write(self, batch: Batch) -> None:
        training_run = batch.run.run.get("wandb")
        if training_run and training_run.get("stats") and not training_run.get("shared"):
            raise Gone(
                "W&B's own system metrics are enabled in this run; disable them with "
                "wandb.init(settings=wandb.Settings(x_disable_stats=True))"
            )
        target = self._open(training_run)
        if batch.empty:
            target.heartbeat()
            return
        target.write(batch, self._content(batch, training_run))
        for note in batch.notes_of(LIFECYCLE):
            if note.value.get("what") == "end" and not training_run:
                self._state["ended"] = [_exit_code(note), note.time_ms]

    def _open(self, training_run: Mapping[str, Any] | None) -> RunTarget:
        if self._target is None:
            offline = training_run.get("offline") if training_run else self._address.mode == "offline"
            target_class: Callable[..., RunTarget] = OfflineRun if offline else OnlineRun
            self._target = target_class(self._address, self._context, dict(training_run or {}))
        return self._target

    def _content(self, batch: Batch, training_run: Mapping[str, Any] | None) -> RunUpdate:
        began_ms = self._state.setdefault("began_ms", batch.writer.started_ms)
        content = RunUpdate(began_ms)
        suffix = f"/l:{safe_name(batch.writer.host)}" if self._address.shared else ""
        if training_run and training_run.get("shared"):  # next to W&B's own samples, under our label
            suffix = f"/l:runvitals-{safe_name(batch.writer.host)}"
        content.samples = sample(batch, self._address.every_s, suffix)
        if training_run:
            return content
        content.printed = list(console_lines(batch, self._state.setdefault("open_lines", {})))
        config = dict(leaves(batch.run.config))
        if config != self._state.get("config"):
            self._state["config"] = content.config = config
        if self._is_main(batch):
            content.rows = rows(batch)
        summary = dict(self._state.get("summary", {}))
        for row in content.rows:
            summary.update(row.data)
        summary.update(batch.run.summary)
        if summary != self._state.get("summary", {}):
            self._state["summary"] = content.summary = summary
        return content

    def _is_main(self, batch: Batch) -> bool:
        """Return whether this writer's rows are sent: those of the first rank, else of the first process.

        W&B has one sequence of rows for a run.
        """
        writer = batch.writer
        if writer.role != _TRAIN or writer.rank not in (None, 0):
            return False
        return bool(self._state.setdefault("main", writer.name) == writer.name)

    def close(self) -> None:
        """Mark the run as finished if it ended, and close the connection."""
        target, self._target = self._target, None
        if target is None:
            return
        try:
            if "ended" in self._state:
                target.end(*self._state["ended"])
                del self._state["ended"]
                self._context.save()
        finally:
            target.close()


def _exit_code(note: Note) -> int:
    """Return the exit code as a shell reports it; W&B treats all but 0 as a failure."""
    value = note.value
    if value.get("exit_code") is not None:
        return int(value["exit_code"])
    if value.get("signal"):
        return 128 + int(value["signal"])
    return 0 if value.get("state") == "finished" else 1
