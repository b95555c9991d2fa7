"""Many small files in one request: all of them are kept, or none."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from runvitals.model import small_files
from runvitals.model.limits import PIECE_BYTES, SMALL_FILE_BYTES
from runvitals.server.files.reserved_space import FileLimits
from tests.patience import PATIENCE_S
from tests.server.files.test_received_files import new_run
from tests.server.serving import Served, serving

PATH = "/api/v1/runs/abc/small-files"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "server") as running:
        yield running


def sha256_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def post(served: Served, body: bytes) -> httpx.Response:
    return httpx.post(
        f"{served.url}{PATH}",
        content=body,
        headers={"content-type": "application/octet-stream"},
        timeout=PATIENCE_S,
    )


def test_all_are_kept_in_one_request(served: Served) -> None:
    run_id = new_run(served.metadata_store)
    contents = {sha256_of(content): content for content in (b"", b"a", b"b" * SMALL_FILE_BYTES)}
    for _ in range(2):  # the second time, they are there
        response = post(served, small_files.pack(contents.items()))
        assert [(file["sha256"], file["complete"]) for file in response.json()["files"]] == [
            (sha256, True) for sha256 in contents
        ]
    for sha256, content in contents.items():
        opened = served.app.services.files.open(run_id, sha256)
        assert opened is not None
        with opened.file as file:
            assert file.read() == content
    assert served.metadata_store.stored_files.run_bytes(run_id) == sum(map(len, contents.values()))


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        (
            small_files.pack([(sha256_of(b"a"), b"a"), (sha256_of(b"b"), b"c")]),
            422,
            "does not have the SHA-256",
        ),
        (small_files.pack([(sha256_of(b"a"), b"a")])[:-1], 422, "ends within a file of 1 bytes"),
        (small_files.pack([(sha256_of(b"a"), b"a")]) + b"x", 422, "ends within the head"),
        (small_files.pack([("0" * 64, bytes(SMALL_FILE_BYTES + 1))]), 422, "at most 65,536"),
        (bytes(PIECE_BYTES + 1), 413, "at most"),
    ],
)
def test_what_is_wrong_with_one_is_wrong_with_all(
    served: Served, body: bytes, status: int, text: str
) -> None:
    run_id = new_run(served.metadata_store)
    response = post(served, body)
    assert (response.status_code, text in response.text) == (status, True)
    assert served.metadata_store.stored_files.run_bytes(run_id) == 0


def test_limits_and_unknown_runs(served: Served) -> None:
    assert post(served, b"").status_code == 404
    new_run(served.metadata_store)
    assert post(served, b"").json() == {"files": []}
    served.app.services.files.limits = FileLimits(run_bytes=3)
    body = small_files.pack([(sha256_of(b"ab"), b"ab"), (sha256_of(b"cd"), b"cd")])
    assert post(served, body).status_code == 413
