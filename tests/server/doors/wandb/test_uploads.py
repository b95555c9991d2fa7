"""Uploads: their addresses allow one file each, for a while."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from runvitals.server.doors.wandb.upload_tokens import Upload, UploadTokens
from tests.patience import PATIENCE_S
from tests.server.doors.wandb.conftest import Door

CREATE = """mutation CreateRunFiles($entity: String!, $project: String!, $run: String!, $files: [String!]!) {
  createRunFiles(input: {entityName: $entity, projectName: $project, runName: $run, files: $files}) {
    runID uploadHeaders files { name uploadUrl } } }"""
UPLOAD = Upload(7, 3, "node1", "model.pt", 2000)


def asked(door: Door, *names: str, **more: Any) -> Any:
    sent = {"entity": "main", "project": "digits", "run": door.run, "files": list(names), **more}
    return door.graphql(CREATE, **sent)


def addresses(door: Door, *names: str) -> dict[str, str]:
    found = asked(door, *names)["data"]["createRunFiles"]["files"]
    return {file["name"]: file["uploadUrl"] for file in found}


def put(address: str, content: bytes) -> httpx.Response:
    return httpx.put(address, content=content, timeout=PATIENCE_S)


def test_a_file_is_kept_under_its_name(door: Door) -> None:
    door.begin()
    found = addresses(door, "a/model.pt", "empty")
    assert put(found["a/model.pt"], b"first").status_code == 200
    assert put(found["a/model.pt"], b"second").status_code == 200
    assert put(found["empty"], b"").status_code == 200
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
    found = addresses(door, "wandb-metadata.json", "requirements.txt")
    git = {"remote": "https://user:secret@example.org/x.git", "commit": "abc"}
    about = {"program": "train.py", "args": ["--password", "hunter2"], "git": git, "gpu": "H100", "host": "n"}
    put(found["wandb-metadata.json"], json.dumps(about).encode())
    put(found["requirements.txt"], b"numpy==2.4.6\n-e .\n")
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
    tokens = UploadTokens(b"key")
    token = tokens.token(UPLOAD)
    assert tokens.upload(token, 1999) == UPLOAD
    assert tokens.upload(token, 2000) is None
    assert UploadTokens(b"another").upload(token, 1999) is None
    for index in range(0, len(token), 7):
        letter = "A" if token[index] != "A" else "B"
        assert tokens.upload(token[:index] + letter + token[index + 1 :], 1999) is None
    for wrong in ("", "é", "A" * 10_000):
        assert tokens.upload(wrong, 0) is None
