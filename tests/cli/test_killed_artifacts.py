"""Artifacts whose client, server or housekeeping is killed: nothing acknowledged is lost, nothing half shown.

One round of each in the suite; by hand KILL_ROUNDS=30.
"""

from __future__ import annotations

import hashlib
import os
import random
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import runvitals
from runvitals.model.durations import DAY_MS
from runvitals.server.doors.wandb.context import node_id
from runvitals.server.files import received_files
from runvitals.server.files.received_files import ReceivedFiles
from runvitals.server.metadata_store import MetadataStore, open_metadata_store
from tests.cli.test_server import serving
from tests.empty_metadata import new_metadata_store
from tests.forked_command import ForkedCommand, ForkedProcess
from tests.patience import eventually
from tests.server.database.artifacts.making import T0, logged, md5, new_project

ROUNDS = int(os.environ.get("KILL_ROUNDS", "1"))
ARTIFACTS = "/api/v1/projects/digits/artifacts"
RANDOM = random.Random(7)


def recorded(folder: Path, number: int) -> dict[str, bytes]:
    """Record a run without a server that logs an artifact `data-NUMBER`; returns its files."""
    files = {f"small/{i}": RANDOM.randbytes(2000) for i in range(20)}
    files |= {"large": RANDOM.randbytes(6 << 20), "same": b"same"}
    with runvitals.init(
        project="digits", id=f"run-{number}", dir=str(folder), mode="offline", reinit=True
    ) as run:
        artifact = runvitals.Artifact(f"data-{number}", "dataset")
        for path, content in files.items():
            with artifact.new_file(path, "wb") as file:
                file.write(content)
        run.log_artifact(artifact)
    return files


def shown(client: httpx.Client) -> list[str]:
    """The names of artifacts; each has all the files that its version names, with the right content."""
    page = client.get(ARTIFACTS, params={"limit": 200})
    if page.status_code == 404:  # the project is made by the first run
        return []
    names = [row["name"] for row in page.json()["collections"] if row["kind"] == "sequence"]
    for name in names:
        listed = client.get(f"{ARTIFACTS}/{name}/latest/files", params={"limit": 200}).json()["files"]
        assert len(listed) == 22, name
        for row in (listed[0], listed[-1]):
            content = client.get(f"{ARTIFACTS}/{name}/latest/content", params={"path": row["path"]}).content
            assert hashlib.sha256(content).hexdigest() == row["sha256"]
    return names


def check(client: httpx.Client, expected: Mapping[str, Mapping[str, bytes]]) -> None:
    for name, files in expected.items():
        for path, content in files.items():
            response = client.get(f"{ARTIFACTS}/{name}/latest/content", params={"path": path})
            assert response.content == content, (name, path, response.status_code)


def sync(folder: Path, number: int, client: httpx.Client) -> ForkedCommand:
    return ForkedCommand(
        "sync", f"run-{number}", "--dir", str(folder), "--to", str(client.base_url).rstrip("/")
    )


def test_client_and_server_are_killed_while_files_arrive(tmp_path: Path) -> None:
    data, store = tmp_path / "data", tmp_path / "store"
    acknowledged: dict[str, dict[str, bytes]] = {}
    for number in range(ROUNDS):
        files = recorded(data, number)
        with serving(store) as (server, client):
            sender = sync(data, number, client)
            time.sleep(RANDOM.uniform(0.05, 1.0))
            sender.kill()
            sender.communicate()
            shown(client)
            sender = sync(data, number, client)
            time.sleep(RANDOM.uniform(0.05, 1.0))
            server.kill()
            server.wait()
            sender.kill()
            sender.communicate()
        with serving(store) as (server, client):
            assert set(acknowledged) <= set(shown(client))
            sender = sync(data, number, client)
            out, err = sender.communicate()
            assert sender.returncode == 0, out + err
            acknowledged[f"data-{number}"] = files
            server.kill()  # right after the acknowledgement
            server.wait()
    with serving(store) as (_, client):
        check(client, acknowledged)
        assert len(shown(client)) == ROUNDS


@contextmanager
def linking(client: httpx.Client, version_id: int, names: Iterator[str]) -> Iterator[list[str]]:
    """While a client links a version under one name after the other; yields those that were acknowledged."""
    acknowledged: list[str] = []
    query = """mutation L($id: ID!, $name: String!) { linkArtifact(input: {artifactID: $id,
      entityName: "main", projectName: "digits", artifactPortfolioName: $name,
      aliases: [{alias: "prod", artifactCollectionName: $name}]})
      { versionIndex } }"""

    def link() -> None:
        try:
            for name in names:
                variables = {"id": node_id("Artifact", version_id), "name": name}
                response = client.post("/graphql", json={"query": query, "variables": variables})
                answer = response.json()
                assert answer.get("data") == {"linkArtifact": {"versionIndex": 0}}, response.text
                acknowledged.append(name)
        except httpx.TransportError:
            return

    thread = threading.Thread(target=link)
    thread.start()
    yield acknowledged
    thread.join()


def test_the_server_is_killed_while_versions_are_linked(tmp_path: Path) -> None:
    store, all_names = tmp_path / "store", (f"best-{number}" for number in range(1_000_000))
    files = recorded(tmp_path / "data", 0)
    with serving(store) as (server, client):
        sender = sync(tmp_path / "data", 0, client)
        out, err = sender.communicate()
        assert sender.returncode == 0, out + err
    linked: list[str] = []
    for _ in range(ROUNDS):
        with serving(store) as (server, client), linking(client, 1, all_names) as acknowledged:
            few = RANDOM.randrange(1, 6)
            eventually(lambda few=few, acknowledged=acknowledged: len(acknowledged) >= few)
            server.kill()
            server.wait()
        linked += acknowledged
    with serving(store) as (_, client):
        check(client, {"data-0": files})
        for name in linked:
            versions: dict[str, Any] = client.get(f"{ARTIFACTS}/{name}").json()
            assert [row["aliases"] for row in versions["artifacts"]] == [["latest", "prod"]], name


def collect(folder: str) -> int:
    """Remove what nothing needs, as a server does 30 days later; also what was put there a moment ago."""
    with (
        open_metadata_store(f"{folder}/catalogue.db") as store,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(received_files, "_ORPHAN_S", -1.0)
        patch.setattr(received_files, "_STALE_S", -1.0)
        ReceivedFiles(f"{folder}/files", store, lambda: T0 + 30 * DAY_MS).collect()
    return 0


def versions_of(
    store: MetadataStore, files: ReceivedFiles, project_id: int, first: int
) -> dict[int, list[bytes]]:
    """Log a dozen versions, of which each has a content of its own and one of the version before."""
    kept = {}
    for number in range(first, first + 12):
        contents = [f"content {n}".encode() * 50 for n in (number, max(number - 1, 0))]
        for content in contents:
            keep(store, files, project_id, content)
        version = logged(store, project_id, {"a": contents[0], "b": contents[1]})
        kept[version.id] = contents
    return kept


def keep(store: MetadataStore, files: ReceivedFiles, project_id: int, content: bytes) -> None:
    path = files.begin(len(content))
    Path(path).write_bytes(content)
    add = store.artifacts.contents.add
    files.keep(
        path,
        hashlib.sha256(content).hexdigest(),
        len(content),
        lambda file: add(project_id, md5(content), file, T0),
        0,
    )


def test_housekeeping_is_killed(tmp_path: Path) -> None:
    with new_metadata_store(tmp_path / "catalogue.db") as store:
        project_id = new_project(store)
        files = ReceivedFiles(str(tmp_path / "files"), store, lambda: T0)
        kept: dict[int, list[bytes]] = {}
        for number in range(ROUNDS):
            kept |= versions_of(store, files, project_id, 12 * number)
            for version_id in RANDOM.sample(sorted(kept), 6):
                store.artifacts.versions.delete(version_id, T0, with_aliases=True)
                del kept[version_id]
            (tmp_path / "files" / "uploads" / "whole-abandoned").write_bytes(b"left behind")
            process = ForkedProcess(collect, [str(tmp_path)], os.environ)
            time.sleep(RANDOM.uniform(0.0, 0.3))
            process.kill()
            process.communicate()
            assert readable(store, files, project_id) == contents_of(kept)
        last = ForkedProcess(collect, [str(tmp_path)], os.environ)
        out, err = last.communicate()
        assert last.returncode == 0, out + err
        assert readable(store, files, project_id) == contents_of(kept)
    there = {path.name for path in (tmp_path / "files" / "contents").glob("*/*")}
    assert there == {hashlib.sha256(content).hexdigest() for content in contents_of(kept)}
    assert list((tmp_path / "files" / "uploads").iterdir()) == []


def contents_of(kept: Mapping[int, list[bytes]]) -> set[bytes]:
    return {content for contents in kept.values() for content in contents}


def readable(store: MetadataStore, files: ReceivedFiles, project_id: int) -> set[bytes]:
    """The contents of all files that committed versions name."""
    collection = store.artifacts.collections.named(project_id, "mnist")
    assert collection is not None
    found = set()
    for member in store.artifacts.collections.members(collection.id, 0, 10_000, oldest_first=True):
        for entry in store.artifacts.entries.all(member.version.id):
            assert entry.sha256 is not None
            opened = None if entry.stored is None else files.open_file(entry.stored)
            assert opened is not None, entry.path
            with opened.file as content:
                found.add(content.read())
    return found
