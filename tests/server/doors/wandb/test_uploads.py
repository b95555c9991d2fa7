"""Uploads: their addresses allow one file each, for a while."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx
import pytest

from runvitals.server.access.identification.identity import CredentialOwner
from runvitals.server.doors.signed_paths import SignedPaths
from runvitals.server.doors.wandb.uploads import FileOfRun
from runvitals.server.files.reserved_space import FileLimits
from runvitals.server.http.request_errors import HttpRejection
from tests.patience import PATIENCE_S, eventually
from tests.server.doors.wandb.conftest import Door

CREATE = """mutation CreateRunFiles($entity: String!, $project: String!, $run: String!, $files: [String!]!) {
  createRunFiles(input: {entityName: $entity, projectName: $project, runName: $run, files: $files}) {
    runID uploadHeaders files { name uploadUrl } } }"""
UPLOAD = FileOfRun(7, 3, "node1", "model.pt")
OWNER = CredentialOwner("user", 5, 9)


def asked(door: Door, *names: str, **more: Any) -> Any:
    sent = {"entity": "main", "project": "digits", "run": door.run, "files": list(names), **more}
    return door.graphql(CREATE, **sent)


def addresses(door: Door, *names: str) -> dict[str, str]:
    files = asked(door, *names)["data"]["createRunFiles"]["files"]
    return {file["name"]: file["uploadUrl"] for file in files}


def put(address: str, content: bytes | Iterable[bytes]) -> httpx.Response:
    return httpx.put(address, content=content, timeout=PATIENCE_S)


def test_a_file_is_kept_under_its_name(door: Door) -> None:
    door.begin()
    urls = addresses(door, "a/model.pt", "empty")
    assert put(urls["a/model.pt"], b"first").status_code == 200
    assert put(urls["a/model.pt"], b"second").status_code == 200
    assert put(urls["empty"], b"").status_code == 200
    files = {file["name"]: file for file in door.shown("/files")["files"]}
    assert {name: file["bytes"] for name, file in files.items()} == {"a/model.pt": 6, "empty": 0}


def test_a_file_of_several_megabytes(door: Door) -> None:
    door.begin()
    content = bytes(range(256)) * 20_000
    assert put(addresses(door, "big")["big"], content).status_code == 200
    (file,) = door.shown("/files")["files"]
    url = f"{door.served.url}/api/v1/runs/{door.run}/files/{file['sha256']}"
    assert httpx.get(url, timeout=PATIENCE_S).content == content


def test_what_the_files_of_the_client_say_about_the_machine(door: Door) -> None:
    door.begin()
    urls = addresses(door, "wandb-metadata.json", "requirements.txt")
    git = {"remote": "https://user:secret@example.org/x.git", "commit": "abc"}
    about = {"program": "train.py", "args": ["--password", "hunter2"], "git": git, "gpu": "H100", "host": "n"}
    put(urls["wandb-metadata.json"], json.dumps(about).encode())
    put(urls["requirements.txt"], b"numpy==2.4.6\n-e .\n")
    run = door.shown()
    machine = run["machines"]["node1"]
    assert machine["packages"] == {"numpy": "2.4.6"}
    assert (machine["gpu"], machine["git"]["commit"]) == ("H100", "abc")
    assert run["command"][:2] == ["train.py", "--password"]
    assert "secret" not in json.dumps(run)
    assert "hunter2" not in json.dumps(run)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"args": 7, "git": [], "program": {}}', b"\xff\xfe"])
def test_facts_that_are_damaged_are_a_file_like_any_other(door: Door, content: bytes) -> None:
    door.begin()
    assert put(addresses(door, "wandb-metadata.json")["wandb-metadata.json"], content).status_code == 200
    assert len(door.shown("/files")["files"]) == 1


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/passwd", "a\\..\\x", "", "x" * 600])
def test_names_that_lead_out_of_the_run_are_refused(door: Door, name: str) -> None:
    door.begin()
    assert "invalid name of a file" in asked(door, name)["errors"][0]["message"]


def test_a_run_that_nobody_began_has_no_files(door: Door) -> None:
    assert "there is no run" in asked(door, "x")["errors"][0]["message"]


def test_an_address_that_was_changed_allows_nothing(door: Door) -> None:
    door.begin()
    address = addresses(door, "x")["x"]
    for wrong in (address[:-3], address + "AAA", f"{door.served.url}/wandb/signed/run-files/{'A' * 80}"):
        assert put(wrong, b"x").status_code == 403
    assert door.shown("/files")["files"] == []


def test_what_a_token_allows() -> None:
    now_ms = 1000
    paths = SignedPaths(b"key", lambda: now_ms)
    token = paths.token(OWNER, UPLOAD, 1000)
    assert paths.open(token, FileOfRun) == (OWNER, UPLOAD)
    wrong = ["", "é", "A" * 10_000, token[:-3], f"{token}AAA"]
    wrong += [token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :] for at in range(0, 100, 7)]
    for text in wrong:
        with pytest.raises(HttpRejection, match="not valid"):
            paths.open(text, FileOfRun)
    with pytest.raises(HttpRejection, match="not valid"):
        SignedPaths(b"another", lambda: now_ms).open(token, FileOfRun)
    now_ms = 2001
    with pytest.raises(HttpRejection, match="time of this address is over"):
        paths.open(token, FileOfRun)


def in_parts(address: str, content: bytes, parts: int) -> httpx.Response:
    """Send a file without saying how large it is."""
    size = -(-len(content) // parts)
    return put(address, (content[first : first + size] for first in range(0, len(content), size)))


def test_a_file_of_unknown_size_counts_against_the_limits(door: Door) -> None:
    door.begin()
    files = door.served.app.services.files
    before = files.limits
    content = bytes(range(256)) * 12_000  # three times as much as is written at once
    files.limits = FileLimits(run_bytes=2_000_000)
    try:
        response = in_parts(addresses(door, "big")["big"], content, 7)
        assert (response.status_code, "files of the run" in response.text) == (413, True)
        assert in_parts(addresses(door, "small")["small"], content[:1000], 3).status_code == 200
    finally:
        files.limits = before
    assert [file["name"] for file in door.shown("/files")["files"]] == ["small"]


def test_a_connection_that_ends_leaves_nothing(door: Door, folder_of_uploads: Path) -> None:
    door.begin()
    path = addresses(door, "cut")["cut"].removeprefix(door.served.url)
    head = f"PUT {path} HTTP/1.1\r\nhost: {door.served.url[7:]}\r\ncontent-length: 5000000\r\n\r\n"
    with door.served.connect() as connection:
        connection.sendall(head.encode() + bytes(2_500_000))
        eventually(lambda: any(folder_of_uploads.iterdir()))
    eventually(lambda: not any(folder_of_uploads.iterdir()))
    assert door.shown("/files")["files"] == []


def test_a_disk_that_is_full(door: Door, folder_of_uploads: Path) -> None:
    door.begin()
    address = addresses(door, "x")["x"]
    moved = folder_of_uploads.with_name("elsewhere")
    folder_of_uploads.rename(moved)
    try:
        assert put(address, b"content").status_code == 503
    finally:
        moved.rename(folder_of_uploads)
    assert put(address, b"content").status_code == 200


def test_a_large_table_waits_for_memory(door: Door) -> None:
    """Decoded, a table takes much more memory than its file: it is counted among what is in flight."""
    door.begin()
    address = addresses(door, "t.table.json")["t.table.json"]
    content = json.dumps({"columns": ["a"], "data": [[7]] * 1000}).encode()
    recorder = door.served.app.services.door_recorder
    rest = recorder.limits.bytes_in_flight - (3 << 20)
    with recorder.in_flight(rest):
        assert put(address, content + b" " * (1 << 20)).status_code == 429
    assert put(address, content).status_code == 200
    (file,) = door.shown("/files")["files"]
    assert file["name"] == "t.table.json"
