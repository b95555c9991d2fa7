"""Artifacts that our own runs log, delivered to a server: read by our client and by wandb's addresses."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import runvitals
from runvitals.cli import main
from runvitals.model.artifacts import UnknownArtifact
from runvitals.readers.servers import Client
from runvitals.server.audit.storage.audit import CLI
from tests.patience import PATIENCE_S
from tests.server.serving import Served, serving

T0 = 1_760_000_000_000
LACKING = {"path": "x", "md5": "1B2M2Y8AsgTpgAmY7PhCfg==", "sha256": "0" * 64, "bytes": 1, "type": ""}


class Lab:
    """A server with accounts, on which ada has the project `digits`, and this machine."""

    def __init__(self, served: Served, folder: Path) -> None:
        self.served = served
        self.folder = folder
        accounts = served.metadata_store.accounts
        self.keys = {}
        for name, role in (("ada", "admin"), ("bo", "member")):
            user = accounts.users.create(name, CLI, T0, org_role=role)
            self.keys[name], _ = accounts.keys.create("a", CLI, T0, user_id=user.id)
        served.app.services.access.rights_changed()

    def deliver(self, run_id: str, who: str) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("RUNVITALS_TOKEN", self.keys[who])
            patch.setenv("RUNVITALS_SERVER", self.served.url)
            assert main(["sync", run_id, "--dir", str(self.folder), "--to", self.served.url]) == 0

    def client(self, who: str = "ada") -> Client:
        return Client(self.served.url, self.keys[who])

    def get(self, path: str, /, who: str = "ada", **parameters: Any) -> Any:
        headers = {"authorization": f"Bearer {self.keys[who]}"}
        url = f"{self.served.url}/api/v1{path}"
        return httpx.get(url, params=parameters, headers=headers, timeout=PATIENCE_S)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with serving(tmp_path_factory.mktemp("server")) as served:
        yield Lab(served, tmp_path_factory.mktemp("data"))


def recorded(
    lab: Lab, who: str, *artifacts: runvitals.Artifact, use: str | None = None, entity: str | None = None
) -> str:
    """A run that logged artifacts, delivered; its id."""
    about = {"project": "cars" if entity else "digits", "entity": entity}
    with runvitals.init(**about, dir=str(lab.folder), mode="offline", reinit=True) as run:
        for artifact in artifacts:
            run.log_artifact(artifact, aliases=["mine"])
        if use is not None:
            item = {"action": "use", "artifact": use, "use_as": ""}
            run._media_recorder().artifact(use, lambda _: [item], 0, run._now_ms)
    lab.deliver(run.id, who)
    return run.id


def made(name: str, **files: str) -> runvitals.Artifact:
    artifact = runvitals.Artifact(name, "dataset", "about it", {"rows": 2})
    for path, content in files.items():
        with artifact.new_file(f"{path}.txt") as file:
            file.write(content)
    artifact.add_reference("s3://bucket/key")
    return artifact


def test_a_version_that_a_run_logged(lab: Lab, tmp_path: Path) -> None:
    run_id = recorded(lab, "ada", made("mnist", a="one", b="two"))
    with lab.client() as client:
        artifact = client.artifact("ada/digits/mnist:mine")
        assert (artifact.version, artifact.type, artifact.aliases) == ("v0", "dataset", ["latest", "mine"])
        assert (artifact.description, artifact.metadata, artifact.file_count) == ("about it", {"rows": 2}, 3)
        assert Path(artifact.download(tmp_path / "all"), "b.txt").read_text() == "two"
        assert artifact.get_entry("key").ref_target() == "s3://bucket/key"
        assert artifact.logged_by().id == run_id
        assert client.artifact("digits/mnist").version == "v0"
        with pytest.raises(UnknownArtifact, match="mnist:v7"):
            client.artifact("digits/mnist:v7")
    lab.deliver(run_id, "ada")
    assert lab.get("/entities/ada/projects/digits/artifacts/mnist").json()["total"] == 1


def test_the_same_files_are_the_same_version_and_others_a_new_one(lab: Lab) -> None:
    recorded(lab, "ada", made("again", a="one"), made("again", a="two"))
    recorded(lab, "ada", made("again", a="one"))
    rows = lab.get("/projects/digits/artifacts/again").json()["artifacts"]
    assert [(row["version"], row["aliases"]) for row in rows] == [(1, ["latest"]), (0, ["mine"])]


def test_what_a_run_logged_and_used(lab: Lab) -> None:
    maker = recorded(lab, "ada", made("used", a="x"))
    user = recorded(lab, "ada", use="ada/digits/used:v0")
    (logged,) = lab.get(f"/runs/{maker}/artifacts").json()["artifacts"]
    assert (logged["name"], logged["version"], logged["run"]) == ("used", 0, maker)
    (used,) = lab.get(f"/runs/{user}/artifacts", relation="used").json()["artifacts"]
    assert (used["name"], used["run"]) == ("used", maker)
    shown = lab.get("/projects/digits/artifacts/used/latest").json()
    assert (shown["run"], shown["used_by"]) == (maker, [user])
    with lab.client() as client:
        assert [run.id for run in client.artifact("digits/used").used_by()] == [user]


def test_nobody_uses_or_reads_what_they_may_not_see(lab: Lab) -> None:
    recorded(lab, "ada", made("secret", a="x"))
    thief = recorded(lab, "bo", use="ada/digits/secret:v0")
    assert lab.get(f"/runs/{thief}/artifacts", "bo", relation="used").json()["total"] == 0
    guesser = recorded(lab, "bo", use="ada/digits/nothing:v0")
    texts = [
        event["text"].replace("secret", "nothing")
        for run_id in (thief, guesser)
        for event in lab.get(f"/runs/{run_id}/events", "bo").json()
        if event["name"] == "artifact_rejected"
    ]
    assert len(texts) == 2
    assert texts[0] == texts[1]  # what exists answers as what does not
    for path in ("secret", "secret/v0", "secret/v0/files", "secret/v0/content?path=a.txt", ""):
        assert lab.get(f"/entities/ada/projects/digits/artifacts/{path}".rstrip("/"), "bo").status_code == 404


def test_a_record_reaches_no_further_than_the_key_that_sent_it(lab: Lab) -> None:
    """Not as far as the author of the run, who may have more rights than the key."""
    accounts = lab.served.metadata_store.accounts
    ada = accounts.users.by_name("ada").id
    team = accounts.teams.create("vision", CLI, T0, administrator=ada)
    lab.keys["ada in vision"], _ = accounts.keys.create("v", CLI, T0, user_id=ada, entities=[team.id])
    lab.keys["ada sends"], _ = accounts.keys.create(
        "i", CLI, T0, user_id=ada, scope="ingest", entities=[team.id]
    )
    lab.served.app.services.access.rights_changed()
    recorded(lab, "ada", made("hidden", a="x"))
    for who in ("ada in vision", "ada sends"):
        own = recorded(lab, who, made("shown", a=who), use="vision/cars/shown", entity="vision")
        (used,) = lab.get(f"/runs/{own}/artifacts", relation="used").json()["artifacts"]
        assert used["name"] == "shown"
        thief = recorded(lab, who, use="ada/digits/hidden:v0", entity="vision")
        assert lab.get(f"/runs/{thief}/artifacts", relation="used").json()["total"] == 0
        texts = [event["text"] for event in lab.get(f"/runs/{thief}/events").json()]
        assert any("there is no artifact ada/digits/hidden:v0" in text for text in texts)
    assert lab.get("/entities/ada/projects/digits/artifacts/hidden/v0").json()["used_by"] == []


def test_lists_in_pages(lab: Lab) -> None:
    recorded(lab, "ada", made("pages", a="1", b="2", c="3"))
    path = "/projects/digits/artifacts/pages/latest/files"
    page = lab.get(path, limit=2).json()
    assert ([file["path"] for file in page["files"]], page["total"]) == (["a.txt", "b.txt"], 4)
    rest = lab.get(path, limit=2, after=page["next"]).json()
    assert ([file["path"] for file in rest["files"]], rest["next"]) == (["c.txt", "key"], None)
    names = [
        row["name"] for row in lab.get("/projects/digits/artifacts", type="dataset").json()["collections"]
    ]
    assert "pages" in names
    assert lab.get("/projects/digits/artifacts", type="none").json()["total"] == 0
    assert lab.get("/projects/none/artifacts").status_code == 404


def test_a_search_has_every_word_and_nothing_of_others(lab: Lab) -> None:
    recorded(lab, "ada", made("Whales-2024", a="x"))
    recorded(lab, "bo", made("whales-of-bo", a="x"))

    def names(text: str, who: str) -> list[str]:
        response = lab.get("/artifacts", who, text=text)
        return [f"{row['entity']}/{row['project']}/{row['name']}" for row in response.json()["collections"]]

    assert names("whales DATAset", "ada") == ["ada/digits/Whales-2024"]
    assert names("2024 whales", "ada") == ["ada/digits/Whales-2024"]
    assert names("whales", "bo") == ["bo/digits/whales-of-bo"]
    assert names("w%les", "ada") == names("whales model", "ada") == []
    assert lab.get("/artifacts").status_code == lab.get("/artifacts", text="x" * 201).status_code == 422


def test_wandbs_client_finds_a_file_by_its_digest(lab: Lab) -> None:
    recorded(lab, "ada", made("theirs", a="for wandb"))
    query = """{ project(entityName: "ada", name: "digits") { artifact(name: "theirs:latest") { id
      currentManifest { file { directUrl } } } } }"""
    auth = ("api", lab.keys["ada"])
    body = {"query": query}
    answer = httpx.post(f"{lab.served.url}/graphql", json=body, auth=auth, timeout=PATIENCE_S).json()
    artifact = answer["data"]["project"]["artifact"]
    manifest = httpx.get(artifact["currentManifest"]["file"]["directUrl"], timeout=PATIENCE_S).json()
    md5 = hashlib.md5(b"for wandb").digest()
    assert manifest["contents"]["a.txt"]["digest"] == base64.b64encode(md5).decode()
    path = f"ada/digits/theirs/{artifact['id']}/{md5.hex()}/a.txt"
    url = f"{lab.served.url}/artifactsV2/default/{path}"
    response = httpx.get(url, auth=auth, timeout=PATIENCE_S, follow_redirects=True)
    assert (response.status_code, response.content) == (200, b"for wandb")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"digest": "0" * 32}, "has the digest"),
        ({"files": [LACKING]}, "was not uploaded"),
        ({"part": 3}, "part 3 of 1"),
        ({"references": [{"path": "../x", "url": "s3://b", "digest": "x"}]}, "invalid path"),
        ({"artifact_type": 7}, "artifact_type"),
        ({"aliases": ["v3"]}, "named by the server"),
    ],
)  # fmt: skip
def test_a_record_that_lies_is_rejected_and_the_run_says_so(
    lab: Lab, change: dict[str, Any], why: str
) -> None:
    item = {"action": "log", "id": "1", "part": 0, "parts": 1, "digest": "x", "artifact_type": "t"} | change
    sent = {"t": T0, "step": 1, "key": "lie", "kind": "artifact", "items": [item]}
    run_id = f"lie-{hashlib.md5(json.dumps(change).encode()).hexdigest()[:6]}"
    envelope = {"run": run_id, "writer": "media.n.1.1", "seq": 0, "project": "digits"}
    body = {**envelope, "records": [[0, "media", sent]]}
    headers = {"authorization": f"Bearer {lab.keys['ada']}"}
    url = f"{lab.served.url}/api/v1/ingest"
    response = httpx.post(url, json=body, headers=headers, timeout=PATIENCE_S)
    if response.status_code == 200:
        texts = [event["text"] for event in lab.get(f"/runs/{run_id}/events").json()]
        assert any(why in text for text in texts), texts
    else:
        assert (response.status_code, "media" in response.text) == (400, True)
    assert lab.get("/projects/digits/artifacts/lie").json().get("total", 0) == 0
