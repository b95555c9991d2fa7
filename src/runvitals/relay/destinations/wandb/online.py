"""A run at a W&B server."""

from __future__ import annotations

import json
from typing import Any

from runvitals.relay.batch import Batch
from runvitals.relay.destination import Context
from runvitals.relay.destinations.wandb.account import WandbAddress
from runvitals.relay.destinations.wandb.http_api import WandbApi
from runvitals.relay.destinations.wandb.lines import RunUpdate, event_line, history_line, output_line

_EVENTS, _HISTORY, _OUTPUT = "wandb-events.jsonl", "wandb-history.jsonl", "output.log"
_SUMMARY = "wandb-summary.json"


class OnlineRun:
    """A run at a W&B server; created with the first batch.

    Args:
        address: the address of the destination.
        context: its state holds `place` (entity, project) and `offsets` (the next line number of each file).
        training_run: the training's own W&B run, if it has one: entity, project, id, base_url.
    """

    def __init__(self, address: WandbAddress, context: Context, training_run: dict[str, Any]) -> None:
        self._address = address
        self._context = context
        self._state = context.state
        self._training_run = training_run
        self._run = str(training_run.get("id") or context.run_id)
        self._api = WandbApi(str(training_run.get("base_url") or address.base_url), context.environ)
        self._stop_requested = False

    def write(self, batch: Batch, content: RunUpdate) -> None:
        """Send the lines of a batch. The first batch, and each with a config, creates or updates the run."""
        if self._training_run:
            self._state["place"] = [
                self._training_run.get("entity") or "",
                self._training_run.get("project") or "",
            ]
        elif "place" not in self._state or content.config is not None:
            self._upsert(batch)
        offsets: dict[str, int] = self._state.setdefault("offsets", {})
        began_ms = content.began_ms
        lines = {
            _EVENTS: [event_line(line, began_ms) for line in content.samples],
            _HISTORY: [history_line(row, began_ms) for row in content.rows],
            _OUTPUT: [output_line(line) for line in content.printed],
        }
        files = {
            name: {"offset": offsets.get(name, 0), "content": new_lines}
            for name, new_lines in lines.items()
            if new_lines
        }
        if content.summary is not None:
            files[_SUMMARY] = {"offset": 0, "content": [json.dumps(content.summary)]}
        if files:
            self._stream({"files": files})
        for name, new_lines in lines.items():
            offsets[name] = offsets.get(name, 0) + len(new_lines)

    def _upsert(self, batch: Batch) -> None:
        run = batch.run
        entity, project = self._api.upsert(
            {
                "name": self._run,
                "project": self._address.project or run.project,
                "entity": self._address.entity or None,
                "displayName": run.name,
                "notes": run.run.get("notes") or None,
                "groupName": run.run.get("group") or None,
                "jobType": run.run.get("job_type") or None,
                "config": json.dumps({key: {"value": value} for key, value in run.config.items()}),
                "host": batch.writer.host,
                "tags": run.tags or None,
            }
        )
        self._state["place"] = [entity, project]

    def _stream(self, body: dict[str, Any]) -> None:
        entity, project = self._state["place"]
        is_shared = self._address.shared or self._training_run.get("shared")
        shared = f"runvitals-{self._context.run_id}" if is_shared else ""
        if self._api.stream(entity, project, self._run, body, shared) and not self._stop_requested:
            self._stop_requested = True
            self._context.request_stop("requested at W&B")

    def heartbeat(self) -> None:
        """Tell W&B that the run is alive, if it was created."""
        if "place" in self._state:
            self._stream({})

    def end(self, exit_code: int, ended_ms: int) -> None:
        """Mark the run as complete."""
        self._stream({"complete": True, "exitcode": exit_code})

    def close(self) -> None:
        """Close the connection."""
        self._api.close()
