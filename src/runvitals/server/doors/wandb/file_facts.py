"""Reads uploaded files of clients: facts about the machine, packages, and tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from runvitals.model import media
from runvitals.model.media import is_sha256
from runvitals.model.values import Sanitizer
from runvitals.monitoring.environment import redaction
from runvitals.monitoring.environment.packages import MAX_PACKAGES
from runvitals.server.doors.wandb.media_items import media_item
from runvitals.server.doors.wandb.stream_body import parse_line

METADATA: Final = "wandb-metadata.json"
REQUIREMENTS: Final = "requirements.txt"
_TABLE: Final = ".table.json"
_MAX_FACTS_BYTES: Final = 4 << 20
_MAX_TABLE_BYTES: Final = 16 << 20
"""A larger table is kept as a file: while it is decoded it takes `_DECODED` times as much memory."""
_DECODED: Final = 12
_MAX_ROWS: Final = 100_000
_LONGEST: Final = 200
_NAMES: Final = {
    "host": "hostname",
    "os": "os",
    "python": "python",
    "program": "program",
    "codePath": "code_path",
    "root": "cwd",
    "executable": "executable",
    "docker": "docker",
    "username": "user",
    "cpu_count": "cpu_count",
    "cpu_count_logical": "cpu_count_logical",
    "gpu": "gpu",
    "gpu_count": "gpu_count",
    "cudaVersion": "cuda_version",
    "slurm": "slurm",
    "startedAt": "started_at",
}


def facts_of_file(name: str, path: str, size: int) -> dict[str, dict[str, Any]]:
    """Return the sections that a file contributes to; empty for most files."""
    if name not in (METADATA, REQUIREMENTS) or size > _MAX_FACTS_BYTES:
        return {}
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    if name == REQUIREMENTS:
        facts = packages(text.splitlines())
        return {"machine": {"packages": facts}} if facts else {}
    return metadata_sections(parse_line(text) or {})


def decoding_bytes(name: str, size: int) -> int:
    """Return how much memory it takes to see what a file says."""
    limit = 0
    if name in (METADATA, REQUIREMENTS):
        limit = _MAX_FACTS_BYTES
    elif name.endswith(_TABLE):
        limit = _MAX_TABLE_BYTES
    return _DECODED * size if size <= limit else 0


def packages(lines: Iterable[str]) -> dict[str, str]:
    """Return the versions of packages.

    Example:
        >>> packages(["numpy==2.4.6", "-e .", "# local"])
        {'numpy': '2.4.6'}
    """
    versions: dict[str, str] = {}
    for line in lines:
        name, equals, version = line.strip().partition("==")
        if equals and name and len(line) <= _LONGEST and len(versions) < MAX_PACKAGES:
            versions[name.strip()] = version.strip()
    return Sanitizer().value(versions)  # type: ignore[no-any-return]


def metadata_sections(sent: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the sections of what a client knows about its machine."""
    facts = {ours: sent[theirs] for theirs, ours in _NAMES.items() if sent.get(theirs) not in (None, "")}
    git = sent.get("git")
    if isinstance(git, dict):
        names = ("remote", "commit", "branch")
        facts["git"] = {
            name: redaction.url(str(git[name])) if name == "remote" else str(git[name])
            for name in names
            if git.get(name)
        }
    sections = {"machine": facts} if facts else {}
    arguments = sent.get("args")
    if isinstance(sent.get("program"), str):
        listed = [str(argument) for argument in arguments] if isinstance(arguments, list) else []
        sections["run"] = {"command": redaction.command([sent["program"], *listed])}
    cleaned: dict[str, dict[str, Any]] = Sanitizer().value(sections)
    return cleaned


def table_item(name: str, path: str, size: int) -> tuple[bytes, dict[str, Any]] | None:
    """Return a table of a client as one of ours: its content, and more fields of its item.

    None for other files.
    """
    if not name.endswith(_TABLE) or size > _MAX_TABLE_BYTES:
        return None
    with open(path, encoding="utf-8", errors="replace") as file:
        sent = parse_line(file.read())
    columns, data = (sent or {}).get("columns"), (sent or {}).get("data")
    if not isinstance(columns, list) or not isinstance(data, list):
        return None
    file_by_sha256: dict[str, dict[str, Any]] = {}
    rows = [
        [_cell(value, file_by_sha256) for value in row] for row in data[:_MAX_ROWS] if isinstance(row, list)
    ]
    content = json.dumps({"columns": [str(column) for column in columns], "rows": rows}).encode("ascii")
    item: dict[str, Any] = {
        "kind": media.TABLE,
        "type": "application/json",
        "rows": len(rows),
        "columns": len(columns),
    }
    return content, {**item, "files": list(file_by_sha256.values())} if file_by_sha256 else item


def _cell(value: Any, file_by_sha256: dict[str, dict[str, Any]]) -> Any:
    if isinstance(value, dict) and "_type" in value:
        item = media_item(value)
        if item is not None and is_sha256(item.get("sha256")):
            file_by_sha256[item["sha256"]] = {name: item[name] for name in ("sha256", "bytes", "type")}
            return item
    if isinstance(value, (dict, list)):
        return json.dumps(value)[:100_000]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    return value
