"""A disk on which nothing can be written: senders are told why, readers are served, and it passes."""

from __future__ import annotations

import hashlib
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cramjam
import httpx
import pytest

from runvitals.server.files.reserved_space import FileLimits
from tests.patience import PATIENCE_S, eventually
from tests.server.doors.remote_write.messages import version_1
from tests.server.doors.wandb.conftest import UPSERT
from tests.server.serving import Served, serving

T0 = 1_790_812_800_000


@contextmanager
def nothing_can_be_written() -> Iterator[None]:
    """Have the kernel refuse what this process writes to files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def envelope(seq: int, **more: Any) -> dict[str, Any]:
    row = {"keys": ["loss"], "t": [T0 + seq], "v": [[seq]], "step": [seq]}
    return {"run": "otter-1", "writer": "train", "project": "digits", "seq": seq, **row, **more}


def send(served: Served, *envelopes: dict[str, Any]) -> httpx.Response:
    return httpx.post(f"{served.url}/api/v1/ingest", json=list(envelopes), timeout=PATIENCE_S)


def ask(served: Served, path: str) -> httpx.Response:
    return httpx.get(f"{served.url}{path}", timeout=PATIENCE_S)


def test_a_metadata_store_on_a_full_disk_is_reported_and_read(tmp_path: Path) -> None:
    alert = [1, "event", {"t": T0, "name": "alert", "level": "warn", "text": "x"}]
    with serving(tmp_path, clock=lambda: T0 + 60_000) as served:
        # Rows after the first ones wait to be added to the summary of the run, which readers see at once.
        for seq in range(3):
            assert send(served, envelope(seq)).status_code == 200
        with nothing_can_be_written():
            refused = send(served, envelope(3, records=[alert]))
            ready = ask(served, "/readyz")
            runs = ask(served, "/api/v1/runs")
            one = ask(served, "/api/v1/runs/otter-1")
        assert refused.status_code == 503
        reason = "could not write to the metadata store: disk I/O error"
        assert refused.json() == {"error": reason}
        assert "retry-after" in refused.headers
        assert ready.status_code == 503
        assert ready.json()["problem"].endswith("catalogue.db: disk I/O error")
        assert [run["id"] for run in runs.json()["runs"]] == ["otter-1"]
        assert one.json()["id"] == "otter-1"
        assert send(served, envelope(3, records=[alert])).status_code == 200
        assert ask(served, "/readyz").status_code == 200
        eventually(lambda: ask(served, "/api/v1/runs/otter-1").json()["summary"]["loss"] == 3)


def put_piece(served: Served) -> httpx.Response:
    sha256 = hashlib.sha256(b"a picture").hexdigest()
    url = f"{served.url}/api/v1/runs/otter-1/files/{sha256}?offset=0&size=9"
    return httpx.put(url, content=b"a picture", timeout=PATIENCE_S)


def send_samples_only(served: Served) -> httpx.Response:
    return send(served, envelope(1))


def send_as_prometheus(served: Served) -> httpx.Response:
    body = cramjam.snappy.compress_raw(version_1([({"__name__": "up", "instance": "n"}, [(T0, 1.0)])]))
    headers = {"content-encoding": "snappy", "content-type": "application/x-protobuf"}
    return httpx.post(f"{served.url}/api/v1/write", content=bytes(body), headers=headers, timeout=PATIENCE_S)


def send_as_otel(served: Served) -> httpx.Response:
    point = {"timeUnixNano": str(T0 * 1_000_000), "asDouble": 1.0}
    metrics = [{"name": "loss", "gauge": {"dataPoints": [point]}}]
    body = {"resourceMetrics": [{"resource": {}, "scopeMetrics": [{"metrics": metrics}]}]}
    return httpx.post(f"{served.url}/v1/metrics", json=body, timeout=PATIENCE_S)


def begin_as_wandb(served: Served) -> httpx.Response:
    variables = {"name": "fox-1", "project": "digits", "entity": "main"}
    body = {"query": UPSERT, "variables": variables}
    return httpx.post(f"{served.url}/graphql", json=body, timeout=PATIENCE_S)


def log_as_mlflow(served: Served) -> httpx.Response:
    body = {"experiment_id": "0", "start_time": T0}
    return httpx.post(f"{served.url}/api/2.0/mlflow/runs/create", json=body, timeout=PATIENCE_S)


def change_a_setting(served: Served) -> httpx.Response:
    return httpx.patch(f"{served.url}/api/v1/runs/otter-1", json={"notes": "x"}, timeout=PATIENCE_S)


DOORS = (
    put_piece,
    send_samples_only,
    send_as_prometheus,
    send_as_otel,
    begin_as_wandb,
    log_as_mlflow,
    change_a_setting,
)


@pytest.mark.parametrize("door", DOORS)
def test_every_door_asks_to_send_again_what_the_disk_could_not_take(
    tmp_path: Path, door: Callable[[Served], httpx.Response]
) -> None:
    with serving(tmp_path, clock=lambda: T0 + 60_000) as served:
        assert send(served, envelope(0)).status_code == 200
        with nothing_can_be_written():
            refused = door(served)
            assert (refused.status_code, "retry-after" in refused.headers) == (503, True), refused.text
            eventually(lambda: ask(served, "/readyz").status_code == 503)
        eventually(lambda: door(served).status_code < 300)
        eventually(lambda: ask(served, "/readyz").json()["ready"])


def test_a_disk_that_is_nearly_full_is_a_warning(tmp_path: Path) -> None:
    with serving(tmp_path, clock=lambda: T0 + 60_000) as served:
        assert send(served, envelope(0)).status_code == 200
        served.app.services.files.limits = FileLimits(free_bytes=1 << 60)
        refused = put_piece(served)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "30")
        assert send(served, envelope(1)).status_code == 200

        def warned() -> bool:
            ready = ask(served, "/readyz")
            return ready.status_code == 200 and "files are refused" in str(ready.json()["warnings"])

        eventually(warned)
