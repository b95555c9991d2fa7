"""Who may upload and read the files of runs, on a server with accounts."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from runvitals.model.artifacts import ArtifactEntry, manifest_digest
from runvitals.server.audit.storage.audit import CLI
from tests.server.access.organisation import NOW, ServedOrganisation, served_organisation

CONTENT = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedOrganisation]:
    with served_organisation(Path(tmp_path_factory.mktemp("files"))) as running:
        for scope, name in (("ingest", "bob's sender"), ("read", "bob's reader")):
            created = running.accounts.keys.create(name, CLI, NOW, user_id=running.users["bob"], scope=scope)
            running.keys[name] = created[0]
        running.rights_changed()
        yield running


def put(served: ServedOrganisation, who: str | None, run: str, content: bytes = CONTENT) -> httpx.Response:
    sha256 = hashlib.sha256(content).hexdigest()
    params = {"offset": 0, "size": len(content)}
    return served.ask(who, "PUT", f"/api/v1/runs/{run}/files/{sha256}", params=params, content=content)


@pytest.mark.parametrize(
    ("who", "run", "status"),
    [
        ("bob", "team-bob", 200),
        ("bob's sender", "team-bob", 200),
        ("bob's reader", "team-bob", 403),
        ("carol", "team-bob", 200),  # members may change runs of others
        ("ci", "team-ci", 200),
        ("vera", "team-bob", 403),
        ("otto", "open-bob", 403),  # anybody may add runs there, and files to their own
        ("otto", "team-bob", 404),
        ("rita", "team-bob", 404),
        ("carol", "private-bob", 404),
        ("bob", "deleted-bob", 403),
        ("bob", "nothing", 404),
        (None, "team-bob", 401),
    ],
)
def test_who_may_upload(served: ServedOrganisation, who: str | None, run: str, status: int) -> None:
    response = put(served, who, run, f"{who} {run}".encode())
    assert response.status_code == status, response.text
    asked = served.ask(who, "POST", f"/api/v1/runs/{run}/files", json={"files": [{"sha256": SHA256}]})
    assert asked.status_code == status, asked.text


@pytest.mark.parametrize(
    ("who", "status"),
    [
        ("bob", 200), ("vera", 200), ("alice", 200), ("bob's reader", 200), ("bob's sender", 404),
        ("otto", 404), ("rita", 404), (None, 401),
    ],
)  # fmt: skip
def test_who_may_read(served: ServedOrganisation, who: str | None, status: int) -> None:
    assert put(served, "bob", "team-bob").json() == {
        "sha256": SHA256, "offset": len(CONTENT), "complete": True,
    }  # fmt: skip
    for path in (f"files/{SHA256}", f"files/{SHA256}/page", "files", "media"):
        response = served.ask(who, "GET", f"/api/v1/runs/team-bob/{path}")
        assert response.status_code == status, (path, response.text)


def test_a_file_belongs_to_the_runs_that_sent_it(served: ServedOrganisation) -> None:
    put(served, "bob", "team-bob")
    assert served.ask("otto", "GET", f"/api/v1/runs/voice-otto/files/{SHA256}").status_code == 404
    response = served.ask(
        "otto", "POST", "/api/v1/runs/voice-otto/files", json={"files": [{"sha256": SHA256}]}
    )
    assert response.json()["files"] == [{"sha256": SHA256, "offset": 0, "complete": False}]
    same = served.ask("carol", "POST", "/api/v1/runs/team-carol/files", json={"files": [{"sha256": SHA256}]})
    assert same.json()["files"][0]["complete"]
    assert served.ask("vera", "GET", f"/api/v1/runs/team-carol/files/{SHA256}").content == CONTENT


def test_the_last_piece_of_somebody_else_is_not_enough(served: ServedOrganisation) -> None:
    """Whoever knows a digest cannot complete the upload of another run, and so get its file."""
    content = b"a secret of two pieces"
    sha256 = hashlib.sha256(content).hexdigest()
    path = "/api/v1/runs/{}/files/" + sha256
    first = {"offset": 0, "size": len(content)}
    served.ask("bob", "PUT", path.format("team-bob"), params=first, content=content[:-1])
    last = {"offset": len(content) - 1, "size": len(content)}
    response = served.ask("otto", "PUT", path.format("voice-otto"), params=last, content=content[-1:])
    assert (response.status_code, response.json()["offset"]) == (409, 0)


@pytest.mark.parametrize(
    ("sha256", "params", "content", "status"),
    [
        ("x" * 64, {"offset": 0, "size": 1}, b"a", 422),
        ("A" * 64, {"offset": 0, "size": 1}, b"a", 422),
        ("a" * 64, {"offset": 0, "size": 1}, b"a", 409),  # the content has another digest
        ("b" * 64, {"offset": 1, "size": 9}, b"a", 409),
        ("b" * 64, {"offset": 0, "size": 1}, b"abc", 422),
        ("b" * 64, {"offset": 0, "size": 9}, b"", 422),
        ("b" * 64, {"offset": -1, "size": 9}, b"a", 422),
        ("b" * 64, {"offset": 0, "size": 1 << 60}, b"a", 422),
        ("b" * 64, {"offset": 0, "size": 1 << 40}, b"a", 413),
        ("b" * 64, {}, b"a", 422),
    ],
)
def test_wrong_pieces(
    served: ServedOrganisation, sha256: str, params: dict[str, int], content: bytes, status: int
) -> None:
    path = f"/api/v1/runs/team-bob/files/{sha256}"
    response = served.ask("bob", "PUT", path, params=params, content=content)
    assert response.status_code == status, response.text
    assert response.json()["error"]


def test_files_go_with_the_last_run_that_has_them(served: ServedOrganisation, tmp_path: Path) -> None:
    content = b"to be removed"
    sha256 = hashlib.sha256(content).hexdigest()
    put(served, "bob", "open-bob", content)
    put(served, "carol", "open-carol", content)
    files = served.served.app.services.files
    runs = served.metadata_store.runs
    for name, there in (("open-bob", True), ("open-carol", False)):
        number = runs.places(name)[0].run_id
        runs.delete([number], NOW)
        assert files.collect() == 0  # it may be restored
        runs.purge([number], NOW)
        assert files.collect() == (0 if there else 1)
        assert any(each.sha256 == sha256 for each in files._store.contents()) == there


def record(served: ServedOrganisation, writer: str, kind: str, item: dict[str, object]) -> None:
    media = {"t": NOW, "step": 1, "key": "weights", "kind": kind, "items": [item]}
    envelope = {"run": "team-bob", "writer": writer, "seq": 0, "project": "team", "entity": "vision"}
    body = {**envelope, "records": [[0, "media", media]]}
    response = served.ask("bob", "POST", "/api/v1/ingest", json=body)
    assert response.status_code == 200, response.text


def test_who_may_not_download_artifacts_gets_no_file_that_only_an_artifact_has(
    served: ServedOrganisation,
) -> None:
    content = b"weights"
    sha256, md5 = hashlib.sha256(content).hexdigest(), hashlib.md5(content).digest()
    put(served, "bob", "team-bob", content)
    entry = ArtifactEntry("model.pt", base64.b64encode(md5).decode(), len(content), None, sha256)
    file = {"path": entry.path, "md5": entry.digest, "sha256": sha256, "bytes": len(content), "type": "x"}
    about = {"id": "1", "digest": manifest_digest([entry]), "artifact_type": "model", "files": [file]}
    record(served, "media.n.1.1", "artifact", {"action": "log", **about})
    listed = "/api/v1/entities/vision/projects/team/artifacts/weights/latest"
    assert served.ask("vera", "GET", f"{listed}/files").json()["files"][0]["sha256"] == sha256
    for path in (f"files/{sha256}", f"files/{sha256}/page"):
        refused = served.ask("vera", "GET", f"/api/v1/runs/team-bob/{path}")
        assert (refused.status_code, "artifact:download" in refused.text) == (403, True)
        assert served.ask("carol", "GET", f"/api/v1/runs/team-bob/{path}").status_code == 200
    record(served, "media.n.1.2", "image", {"sha256": sha256, "bytes": len(content), "type": "image/png"})
    assert served.ask("vera", "GET", f"/api/v1/runs/team-bob/files/{sha256}").status_code == 200
