"""Imports runs of a W&B server."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import datetime, timezone
from itertools import pairwise
from math import isfinite
from statistics import median
from typing import Any, TypeGuard

from runvitals.base.json_codec import loads
from runvitals.journal import paths
from runvitals.model.metrics import DEFINITIONS
from runvitals.model.run_state import State
from runvitals.readers.importers.json_api import ApiError
from runvitals.readers.importers.report import ImportReport
from runvitals.readers.importers.run_draft import RunDescription, RunDraft, run_id_of
from runvitals.readers.importers.shapes import listed, mapping
from runvitals.readers.importers.wandb_server.rows import media_items, without_internals
from runvitals.readers.importers.wandb_server.server import WandbServer

_STATES: dict[str, State] = {
    "finished": "finished", "failed": "failed", "crashed": "crashed", "killed": "stopped",
    "stopped": "stopped", "preempted": "stopped", "lost": "lost",
}  # fmt: skip
_SYSTEM = "system."
_LABEL = "/l:"
_INTERNAL = ("_step", "_runtime", "_timestamp", "_wandb")
_RECORDED = ("wandb-summary.json", "output.log", "wandb-metadata.json", "config.yaml")
"""Files that only repeat what is imported anyway."""
_DEFAULT_INTERVAL_S = 15.0
_RunPath = tuple[str, str, str]


def import_wandb(
    server: WandbServer,
    path: str,
    directory: str,
    project: str | None = None,
    run_id: str | None = None,
    team: str = "",
) -> Iterator[ImportReport]:
    """Import the runs of a project.

    Runs that exist already are left alone, and so are runs that are still running on the server, so the
    import can be repeated.

    Args:
        server: where they are.
        path: `ENTITY/PROJECT`, or `ENTITY/PROJECT/RUN`.
        directory: the data folder.
        project: replaces the name of the project.
        run_id: import only this run.
        team: see `RunDescription`.

    Yields:
        The same report after each run.

    Raises:
        ValueError: an invalid path, or the server rejected the request.
        OSError: the server could not be reached.
    """
    parts = [part for part in path.strip("/").split("/") if part != "runs"]
    if len(parts) not in (2, 3) or not all(parts):
        raise ValueError(
            f"wandb:{path} is no path of a project; expected ENTITY/PROJECT or ENTITY/PROJECT/RUN"
        )
    entity, name = parts[:2]
    only_id = parts[2] if len(parts) == 3 else run_id
    report = ImportReport()
    with closing(server):
        nodes = server.runs(entity, name) if only_id is None else iter([server.run(entity, name, only_id)])
        for node in nodes:
            report.total = server.total
            known_id = run_id_of(str(node["name"]))
            if os.path.exists(paths.run_dir(known_id, directory)):
                report.existing.append(known_id)
            elif node.get("state") in ("running", "pending"):
                report.leave_out("runs that are still running")
            else:
                try:
                    run_path = (entity, name, str(node["name"]))
                    _RunImport(server, run_path, node, report).write(directory, project or name, team)
                except (OSError, ValueError) as error:
                    report.failed[known_id] = str(error)
            yield report
    yield report


class _RunImport:
    """Writes one run."""

    def __init__(
        self, server: WandbServer, path: _RunPath, node: Mapping[str, Any], report: ImportReport
    ) -> None:
        self._server = server
        self._path = path
        self._node = node
        self._report = report
        self._started_ms = _time_ms(node.get("createdAt")) or 0
        self._files = self._listed_files()
        self._media: set[str] = set()  # files that became media

    def write(self, directory: str, project: str, team: str) -> None:
        node = self._node
        events = self._server.events(*self._path)
        times = [event["_timestamp"] for event in events if _is_number(event.get("_timestamp"))]
        gaps = [after - before for before, after in pairwise(times) if after > before]
        facts = self._metadata()
        about = RunDescription(
            run_id_of(self._path[2]), project, "wandb", self._started_ms, str(node.get("displayName") or ""),
            str(node.get("group") or ""), str(node.get("jobType") or ""), str(node.get("notes") or ""),
            self._path[0], [str(tag) for tag in listed(node.get("tags"))],
            str(facts.get("host") or "unknown"),
            without_internals(_json(node.get("config"))), _command(facts),
            team,
        )  # fmt: skip
        with RunDraft(directory, about, median(gaps) if gaps else _DEFAULT_INTERVAL_S) as draft:
            draft.info(
                "machine", {key: value for key, value in facts.items() if key not in ("args", "program")}
            )
            last_ms = self._rows(draft)
            last_ms = max(last_ms, self._samples(draft, events), _time_ms(node.get("heartbeatAt")) or 0)
            self._print(draft)
            self._copy_files(draft, last_ms)
            draft.info("summary", without_internals(_json(node.get("summaryMetrics"))))
            draft.end(_STATES.get(str(node.get("state")), "lost"), last_ms)
            draft.complete()
        self._report.add(about.id, project, draft)

    def _rows(self, draft: RunDraft) -> int:
        last_ms = self._started_ms
        summary = _json(self._node.get("summaryMetrics"))
        last_step = summary.get("_step")
        count = self._node.get("historyLineCount")
        steps = max(count if _is_number(count) else 0, (last_step + 1) if _is_number(last_step) else 0)
        for row in self._server.history(*self._path, int(steps)):
            step = row.get("_step")
            seconds = row.get("_timestamp")
            time_ms = round(seconds * 1000) if _is_number(seconds) else last_ms
            last_ms = max(last_ms, time_ms)
            step = int(step) if _is_number(step) else None
            data = {key: value for key, value in row.items() if key not in _INTERNAL}
            for name, kind, items in media_items(data, self._download_media, draft.store):
                draft.media(time_ms, step, name, kind, items)
            draft.row(time_ms, step, data)
        return last_ms

    def _samples(self, draft: RunDraft, events: list[Mapping[str, Any]]) -> int:
        last_ms = self._started_ms
        for event in events:
            seconds = event.get("_timestamp")
            if not _is_number(seconds):
                continue
            by_host: dict[str, dict[str, float]] = {}
            for key, value in event.items():
                if key.startswith(_SYSTEM) and _is_number(value):
                    key, _, label = key.removeprefix(_SYSTEM).partition(_LABEL)
                    match = DEFINITIONS.find(key)
                    by_host.setdefault(label, {})[match.key if match else key] = float(value)
            last_ms = max(last_ms, round(seconds * 1000))
            for host, values in by_host.items():
                draft.sample(round(seconds * 1000), values, host)
        return last_ms

    def _print(self, draft: RunDraft) -> None:
        """Write the console output: of the file, or else the lines that the server returns."""
        content = self._download("output.log")
        if content is not None:
            draft.print(self._started_ms, content.decode("utf-8", "replace"))
            return
        try:
            for line in self._server.lines(*self._path):
                error = str(line.get("level") or "").lower() == "error"
                time_ms = _time_ms(line.get("timestamp")) or self._started_ms
                draft.print(time_ms, f"{line.get('line') or ''}".rstrip("\n") + "\n", error)
        except ApiError:
            self._report.leave_out("runs without their console output, which the server does not return")

    def _metadata(self) -> Mapping[str, Any]:
        return _json(self._download("wandb-metadata.json"))

    def _listed_files(self) -> dict[str, str]:
        """Return the URLs of the files by name."""
        try:
            files = list(self._server.files(*self._path))
        except ApiError:
            self._report.leave_out("runs without their files, which the server does not list")
            return {}
        named = [file for file in files if file.get("directUrl") and file.get("name")]
        return {str(file["name"]): str(file["directUrl"]) for file in named}

    def _download(self, name: str) -> bytes | None:
        url = self._files.get(name)
        if url is None:
            return None
        try:
            return self._server.content(url)
        except (ApiError, OSError):
            self._report.leave_out("files that could not be downloaded")
            return None

    def _download_media(self, name: str) -> bytes | None:
        self._media.add(name)
        return self._download(name)

    def _copy_files(self, draft: RunDraft, time_ms: int) -> None:
        """Copy the saved files: all but those that were imported as media, rows or output."""
        for name in self._files:
            if name in _RECORDED or name in self._media:
                continue
            content = self._download(name)
            if content is None:
                continue
            with tempfile.NamedTemporaryFile(prefix="runvitals-import-") as copy:
                copy.write(content)
                copy.flush()
                draft.saved_file(time_ms, name, copy.name)


def _command(facts: Mapping[str, Any]) -> dict[str, Any]:
    if not facts.get("program"):
        return {}
    from runvitals.monitoring.environment import redaction

    arguments = [str(word) for word in listed(facts.get("args"))]
    return {"command": redaction.command([str(facts["program"]), *arguments])}


def _json(content: Any) -> Mapping[str, Any]:
    """Return an object, which the server may send as JSON; an empty one for anything else."""
    try:
        content = content.encode() if isinstance(content, str) else content
        return mapping(loads(content) if isinstance(content, bytes) else content)
    except ValueError:
        return {}


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)


def _time_ms(text: Any) -> int | None:
    """Return a time in ISO 8601; UTC if it names no zone."""
    try:
        time = datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        return None
    zoned = time if time.tzinfo else time.replace(tzinfo=timezone.utc)
    return round(zoned.timestamp() * 1000)
