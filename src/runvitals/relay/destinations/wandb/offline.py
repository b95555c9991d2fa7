"""A run as a file for `wandb sync`, like those written with `WANDB_MODE=offline`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

from runvitals.readers.wandb_files import encoding
from runvitals.relay.batch import Batch
from runvitals.relay.destination import Context
from runvitals.relay.destinations.wandb.account import WandbAddress
from runvitals.relay.destinations.wandb.lines import RunUpdate
from runvitals.relay.engine.exactly_once import append


class OfflineRun:
    """The file `wandb/offline-run-<time>-<id>/run-<id>.wandb`, below `WANDB_DIR` or the working directory.

    Args:
        address: has the entity and project.
        context: its state holds `path`, `length` and `number`: which part of the file was written by us.
        training_run: the training's own W&B run, if it has one. It has a file of its own; both are synced.
    """

    def __init__(self, address: WandbAddress, context: Context, training_run: dict[str, Any]) -> None:
        self._address = address
        self._context = context
        self._state = context.state
        self._training_run = training_run
        self._run = str(training_run.get("id") or context.run_id)

    def write(self, batch: Batch, content: RunUpdate) -> None:
        """Append the lines of a batch as records."""
        self._append(content.began_ms, self._records(batch, content))

    def _records(self, batch: Batch, content: RunUpdate) -> Iterator[bytes]:
        if "path" not in self._state:
            yield encoding.header()
            yield self._head(batch, content)
        elif content.config is not None:
            yield encoding.config(content.config)
        for line in content.samples:
            yield encoding.stats(line.time_ms, line.values)
        for row in content.rows:
            when = {
                "_timestamp": row.time_ms / 1000,
                "_runtime": (row.time_ms - content.began_ms) / 1000,
            }
            yield encoding.history(row.step, {**row.data, **when})
        for printed in content.printed:
            yield encoding.output(printed.time_ms, printed.error, printed.text + "\n")
        if content.summary is not None:
            yield encoding.summary(content.summary)

    def _head(self, batch: Batch, content: RunUpdate) -> bytes:
        run, training_run = batch.run, self._training_run
        return encoding.run(
            self._run,
            str(training_run.get("entity") or self._address.entity),
            str(training_run.get("project") or self._address.project or run.project),
            "" if training_run else run.name,
            batch.writer.host,
            content.began_ms,
            content.config or {},
            group=str(run.run.get("group") or ""),
            job_type=str(run.run.get("job_type") or ""),
            notes=str(run.run.get("notes") or ""),
            tags=() if training_run else run.tags,
        )

    def _append(self, began_ms: int, records: Iterator[bytes]) -> None:
        encoded = list(records)
        if "path" not in self._state:
            root = self._context.environ.get("WANDB_DIR") or self._context.cwd
            began = time.strftime("%Y%m%d_%H%M%S", time.gmtime(began_ms / 1000))
            kind = f"offline-run-{began}-{self._run}" + ("-system" if self._training_run else "")
            self._state["path"] = os.path.join(root, "wandb", kind, f"run-{self._run}.wandb")
        path = str(self._state["path"])
        os.makedirs(os.path.join(os.path.dirname(path), "files"), exist_ok=True)
        length, number = int(self._state.get("length", 0)), int(self._state.get("number", 0))
        data, self._state["number"] = encoding.frame(encoded, length, number)
        self._state["length"] = append(path, length, data)

    def heartbeat(self) -> None:
        """Do nothing: a file needs no heartbeat."""

    def end(self, exit_code: int, ended_ms: int) -> None:
        """Append the record of the run's end."""
        runtime_s = max(0, ended_ms - int(self._state["began_ms"])) // 1000
        self._append(ended_ms, iter([encoding.exit_record(exit_code, runtime_s)]))

    def close(self) -> None:
        """Do nothing: the file is not kept open."""
