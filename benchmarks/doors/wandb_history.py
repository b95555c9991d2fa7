"""Rows of wandb's `file_stream`.

Each client is a training that logs 10 metrics a step and sends 100 steps at once, as wandb 0.31 writes them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import count

from benchmarks.doors.peer import Door, Peer
from benchmarks.ingest import server
from runvitals.model.durations import DAY_MS

ROWS, METRICS = 100, 10
_UPSERT = """mutation UpsertBucket($name: String, $project: String, $host: String) {
    upsertBucket(input: {name: $name, modelName: $project, host: $host}) { bucket { id } inserted } }"""


def door() -> Door:
    return Door("wandb_history", "row", ROWS, (1, 4, 16), [Peer("runvitals", server.serving, requests)])


def requests(client: int) -> Iterator[bytes]:
    """The requests of a client: the run begins, then 100 rows in each, a second apart."""
    run = f"run-{client}-{time.time_ns():x}"
    begun = {"name": run, "project": "digits", "host": f"node{client}"}
    yield _post("/graphql", {"query": _UPSERT, "variables": begun})
    path = f"/files/main/digits/{run}/file_stream"
    started_s = (time.time_ns() // 1_000_000 - DAY_MS) / 1000
    for first in count(0, ROWS):
        lines = [_line(step, started_s) for step in range(first, first + ROWS)]
        summary = {"offset": 0, "content": [lines[-1]]}
        history = {"offset": first, "content": lines}
        yield _post(path, {"files": {"wandb-history.jsonl": history, "wandb-summary.json": summary}})


def _line(step: int, started_s: float) -> str:
    values = {f"train/metric_{index}": (step * 7919 + index) % 1000 / 997 for index in range(METRICS)}
    # A hundred rows a second: a day of them before the times are in the future.
    own = {"_step": step, "_runtime": step / 100, "_timestamp": started_s + step / 100}
    return json.dumps({**values, **own})


def _post(path: str, content: object) -> bytes:
    body = json.dumps(content).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
