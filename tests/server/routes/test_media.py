"""Media and files of runs over HTTP: whatever they hold, nothing in them runs as a part of this server."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from fastapi import Request
from starlette.requests import ClientDisconnect

from runvitals.journal import frames, paths
from runvitals.journal.writer import JournalWriter
from runvitals.sdk.media.run_files import RunFiles
from runvitals.server.files.routes import media_models
from runvitals.server.http.content_response import content_response, download_name
from runvitals.server.library.run_library import OpenedContent
from tests.readers.journals.journals import T0
from tests.server.client import Client

INERT = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


class Run:
    """A run with media in a test's folder."""

    def __init__(self, directory: Path, writer: str = "media.node1.7.1", **about: Any) -> None:
        self.folder = paths.run_dir("abc", str(directory))
        self.files = RunFiles(self.folder)
        facts = {"run": "abc", "project": "digits", "host": "node1", "role": "media", "pid": 7, **about}
        self.journal = JournalWriter(self.folder, writer, facts)

    def log(self, key: str, content: bytes, step: int | None = 0, kind: str = "image") -> str:
        item = self.files.add(content)
        self.record(key, [{"kind": kind, **item}], step, kind)
        return str(item["sha256"])

    def record(self, key: str, items: list[Any], step: int | None = 0, kind: str = "image") -> None:
        value = {"t": T0, "step": step, "key": key, "kind": kind, "items": items}
        assert self.journal.json(frames.MEDIA, value)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    run = Run(tmp_path)
    yield run
    run.journal.close()


def content(client: Client, sha256: str, query: str = "", **how: Any) -> httpx.Response:
    return client.get(f"/api/v1/runs/abc/files/{sha256}{query}", **how)


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", "image/svg+xml"),
        (b"<html><script>alert(1)</script>", "text/plain; charset=utf-8"),
        (b"<?xml version='1.0'?><x:script xmlns:x='http://x'/>", "text/plain; charset=utf-8"),
        (b"GIF89a/*<script>*/=1;alert(1)", "image/gif"),
        (b"\x89PNG\r\n\x1a\n<script>alert(1)</script>", "image/png"),
        (b"%PDF-1.7\x00<script>", "application/octet-stream"),
        (b"MZ\x90\x00", "application/octet-stream"),
        (b"", "text/plain; charset=utf-8"),
    ],
)
def test_hostile_contents_are_inert(run: Run, tmp_path: Path, body: bytes, media_type: str) -> None:
    client = Client(tmp_path)
    response = content(client, run.log("evil.html", body, kind="file"))
    assert (response.status_code, response.content) == (200, body)
    headers = response.headers
    assert headers["content-type"] == media_type
    assert headers["content-security-policy"] == INERT
    assert headers["x-content-type-options"] == "nosniff"
    attached = media_type == "application/octet-stream"
    assert headers["content-disposition"].startswith("attachment" if attached else "inline")


def test_a_page_runs_alone(run: Run, tmp_path: Path) -> None:
    client = Client(tmp_path)
    sha256 = run.log("report", b"<script>fetch('/api/v1/runs')</script>", kind="html")
    headers = content(client, sha256, "/page").headers
    policy = headers["content-security-policy"].split("; ")
    assert {"default-src 'none'", "sandbox allow-scripts", "frame-ancestors 'self'"} <= set(policy)
    assert "allow-same-origin" not in headers["content-security-policy"]
    assert (headers["content-type"], headers["x-frame-options"]) == ("text/html; charset=utf-8", "SAMEORIGIN")


@pytest.mark.parametrize(
    ("name", "saved_as"),
    [
        ("../../etc/passwd", "passwd"),
        ("a/b/c.txt", "c.txt"),
        ('x";\r\nSet-Cookie: a=b', "x_;__Set-Cookie_ a=b"),
        ("..", "file"),
        ("\u202egnp.exe", "_gnp.exe"),
        ("C:\\x\\y.txt", "y.txt"),
    ],
)
def test_names_of_downloads(name: str, saved_as: str) -> None:
    assert download_name(name) == saved_as


def test_a_download_has_a_name(run: Run, tmp_path: Path) -> None:
    sha256 = run.log("a", b"text", kind="file")
    response = content(Client(tmp_path), sha256, "", params={"download": "../ü\r\nx: y.txt"})
    assert response.headers["content-disposition"] == "attachment; filename*=UTF-8''%C3%BC__x_%20y.txt"


def test_ranges(run: Run, tmp_path: Path) -> None:
    client, body = Client(tmp_path), bytes(range(256)) * 4000
    sha256 = run.log("video", body)
    for requested, status, part in (
        ("bytes=0-9", 206, body[:10]),
        ("bytes=1000000-", 206, body[1_000_000:]),
        ("bytes=-5", 206, body[-5:]),
        ("bytes=5-99999999", 206, body[5:]),
        ("bytes=1-2,4-5", 200, body),
        ("bytes=x", 200, body),
        ("lines=1-2", 200, body),
    ):
        response = content(client, sha256, headers={"range": requested, "accept-encoding": "gzip"})
        assert (response.status_code, response.content) == (status, part), requested
        assert int(response.headers["content-length"]) == len(part)
    beyond = content(client, sha256, headers={"range": f"bytes={len(body)}-"})
    assert (beyond.status_code, beyond.headers["content-range"]) == (416, f"bytes */{len(body)}")
    again = content(client, sha256, headers={"if-none-match": content(client, sha256).headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["vary"] == "cookie"  # another user of the same browser does not get it from there


def test_only_files_that_a_record_names_are_served(run: Run, tmp_path: Path) -> None:
    client = Client(tmp_path)
    unnamed = str(run.files.add(b"unnamed")["sha256"])
    gone = run.log("gone", b"gone")
    os.unlink(paths.content_path(run.folder, gone))
    fifo = run.log("fifo", b"fifo")
    os.unlink(paths.content_path(run.folder, fifo))
    os.mkfifo(paths.content_path(run.folder, fifo))
    assert content(client, unnamed).status_code == 404
    assert content(client, gone).status_code == 404
    assert content(client, fifo).status_code == 503
    for path in ("x", "..%2f..%2fetc%2fpasswd", "A" * 64, "a" * 63):
        assert content(client, path).status_code in (404, 422), path


def test_media_by_step_from_several_processes(run: Run, tmp_path: Path) -> None:
    other = Run(tmp_path, "media.node1.8.1", pid=8, rank=1)
    for step in (4, 0, 2):
        run.log("scan", f"a{step}".encode(), step)
        other.log("scan", f"b{step}".encode(), step)
    run.record("scan", [], None)
    run.record("hist", [{"kind": "histogram", "value": {"counts": [1], "edges": [0, 1]}}], 3, "histogram")
    other.journal.close()
    client = Client(tmp_path)
    keys = client.ask("runs/abc/media")
    media_models.MediaKeysPage.model_validate(keys)
    assert [(key["key"], key["kind"], key["count"]) for key in keys["media"]] == [
        ("scan", "image", 7), ("hist", "histogram", 1),
    ]  # fmt: skip
    assert client.ask("runs/abc/media/steps", key="scan") == {"steps": [0, 2, 4]}
    first = client.ask("runs/abc/media/records", key="scan", limit=3)
    media_models.MediaRecordsPage.model_validate(first)
    assert ([row["step"] for row in first["records"]], first["total"]) == ([None, 0, 0], 7)
    rest = client.ask("runs/abc/media/records", key="scan", after=first["next"])
    assert ([row["step"] for row in rest["records"]], rest["next"]) == ([2, 2, 4, 4], None)
    two = client.ask("runs/abc/media/records", key="scan", first_step=2, last_step=2)
    assert {row["rank"] for row in two["records"]} == {None, 1}
    assert client.ask("runs/abc/media/records", key="nothing")["total"] == 0


def test_saved_files(run: Run, tmp_path: Path) -> None:
    for name, body in (("b.txt", b"1"), ("a/\u202e.txt", b"2"), ("b.txt", b"33")):
        run.log(name, body, kind="file")
    listing = Client(tmp_path).ask("runs/abc/files")
    media_models.SavedFilesPage.model_validate(listing)
    assert {(file["name"], file["bytes"]) for file in listing["files"]} == {("a/\u202e.txt", 1), ("b.txt", 2)}
    assert "path" not in listing["files"][0]


def test_damaged_records_do_not_hide_the_others(run: Run, tmp_path: Path) -> None:
    run.log("before", b"x")
    for items in ([{"sha256": "../../x", "bytes": 1, "type": "x"}], "x", [7], [{"sha256": "a" * 64}]):
        run.record("bad", items)  # type: ignore[arg-type]
    run.log("after", b"y")
    run.journal.close()
    with open(run.journal.path, "ab") as file:
        file.write(b"\xf5RV1 cut off")
    client = Client(tmp_path)
    assert [key["key"] for key in client.ask("runs/abc/media")["media"]] == ["before", "after"]
    assert any("damaged" in problem for problem in client.ask("runs/abc")["problems"])


def test_a_file_is_closed_although_its_reader_leaves_before_the_first_byte(tmp_path: Path) -> None:
    file = io.BytesIO(b"content")
    request = Request({"type": "http", "method": "GET", "headers": []})
    response = content_response(request, OpenedContent(file, 7, "image/png"), "0" * 64)

    async def leave(message: object) -> None:
        raise OSError("the connection is closed")

    async def receive() -> dict[str, str]:
        return {"type": "http.disconnect"}

    with contextlib.suppress(OSError, ClientDisconnect):
        anyio.run(response, {"type": "http", "asgi": {"spec_version": "2.4"}}, receive, leave)
    assert file.closed
