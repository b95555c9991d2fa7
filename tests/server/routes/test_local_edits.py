"""Changes of runs on the page of this machine: the same routes as a shared server's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.not_root import folder_without_root
from tests.readers.journals.journals import T0, Monitor
from tests.server.client import Client


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for number, name in enumerate("abc"):
        Monitor(tmp_path, name, start_ms=T0 + number).end(T0 + 5000, "finished", exit_code=0)
    return tmp_path


def change(client: Client, method: str, path: str, **body: Any) -> Any:
    response = client.request(method, f"/api/v1/{path}", json=body)
    assert response.status_code == 200, response.text
    return response.json()


def ids(client: Client, **params: Any) -> list[str]:
    return [run["id"] for run in client.ask("runs", **params)["runs"]]


def test_runs_are_renamed_tagged_noted_starred_and_moved(runs: Path, client: Client) -> None:
    assert {"edit", "delete"} <= set(client.ask("about")["capabilities"])
    values = {"name": "baseline", "notes": "good\nrun", "tags": ["x", "y"], "group": "g", "job_type": "eval"}
    assert change(client, "PATCH", "runs/a", **values) == {"run": "a", "done": "edit"}
    change(client, "PATCH", "runs/a", project="other", starred=True)
    again = Client(runs)  # nothing is only in memory
    for asked in (client, again):
        run = asked.ask("runs/a")
        assert {name: run[name] for name in values} == values
        assert (run["project"], run["starred"]) == ("other", True)
        assert run["may"] == ["run:update", "run:move", "run:delete"]
        assert ids(asked, project="other") == ["a"]
        assert ids(asked, filter="name:baseline tag:y") == ["a"]
        projects = {project["name"]: project["runs"] for project in asked.ask("projects")}
        assert projects == {"digits": 2, "other": 1}
    change(client, "PATCH", "runs/a", name=None, starred=False)
    run = client.ask("runs/a")
    assert (run["name"], run["starred"]) == ("a", False)


def test_a_deleted_run_is_in_the_trash_until_it_is_restored(runs: Path, client: Client) -> None:
    client.ask("runs/b")
    change(client, "DELETE", "runs/b")
    assert (ids(client), ids(client, deleted=True)) == (["c", "a"], ["b"])
    (row,) = client.ask("runs", deleted=True)["runs"]
    assert row["deleted_ms"] == client.now_ms
    for path in ("runs/b", "runs/b/metrics", "runs/b/events"):
        response = client.get(f"/api/v1/{path}")
        assert response.status_code == 404
        assert "in the trash: POST /api/v1/runs/b/restore" in response.json()["error"]
    refused = client.request("PATCH", "/api/v1/runs/b", json={"name": "x"})
    assert (refused.status_code, "in the trash" in refused.json()["error"]) == (404, True)
    change(client, "POST", "runs/b/restore")
    assert (ids(client), ids(client, deleted=True)) == (["c", "b", "a"], [])
    assert client.ask("runs/b")["deleted_ms"] is None


def test_many_runs_are_changed_at_once_each_for_itself(runs: Path, client: Client) -> None:
    def bulk(do: str, *names: str, **changes: Any) -> dict[str, Any]:
        body: dict[str, Any] = {"runs": [{"id": name} for name in names], "do": do}
        results = change(client, "POST", "runs/bulk", **body, **({"changes": changes} if changes else {}))
        return {result["id"]: result.get("done") or result["error"] for result in results["results"]}

    results = bulk("update", "a", "b", "no", "../../etc", add_tags=["t"], project="moved")
    assert (results["a"], results["b"]) == ("update", "update")
    assert "no run 'no'" in results["no"]
    assert "invalid run id '../../etc'" in results["../../etc"]
    assert sorted(ids(client, project="moved", tag="t")) == ["a", "b"]
    bulk("update", "a", remove_tags=["t"])
    assert ids(client, tag="t") == ["b"]
    assert bulk("delete", "a", "b") == {"a": "delete", "b": "delete"}
    assert ids(client) == ["c"]
    assert bulk("restore", "a", "b") == {"a": "restore", "b": "restore"}
    assert "can stop runs" in bulk("stop", "a")["a"]


def test_a_project_is_renamed_and_moved_to_the_trash(runs: Path, client: Client) -> None:
    change(client, "PATCH", "runs/c", project="apart")
    change(client, "PATCH", "projects/digits", name="numbers")
    assert sorted(ids(client, project="numbers")) == ["a", "b"]
    taken = client.request("PATCH", "/api/v1/projects/numbers", json={"name": "apart"})
    assert (taken.status_code, "apart" in taken.json()["error"]) == (409, True)
    assert change(client, "DELETE", "projects/numbers")["runs"] == 2
    assert (ids(client), sorted(ids(client, deleted=True))) == (["c"], ["a", "b"])
    assert client.request("DELETE", "/api/v1/projects/numbers", json={}).status_code == 404


def test_the_newest_edit_wins_even_if_the_clock_was_set_back(runs: Path, client: Client) -> None:
    change(client, "PATCH", "runs/a", name="first")
    client.now_ms -= 86_400_000
    change(client, "PATCH", "runs/a", name="second")
    assert client.ask("runs/a")["name"] == "second"


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "rebind.example:8900"},
        {"host": "127.0.0.1.example"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:8901"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "multipart/form-data; boundary=x"},
        {"content-type": ""},
    ],
)
def test_pages_of_other_sites_change_nothing(runs: Path, client: Client, headers: dict[str, str]) -> None:
    requests = [
        ("PATCH", "runs/a", b'{"name":"evil"}'),
        ("DELETE", "runs/a", b"{}"),
        ("POST", "runs/a/restore", b"{}"),
        ("POST", "runs/bulk", b'{"runs":[{"id":"a"}],"do":"delete"}'),
        ("PATCH", "projects/digits", b'{"name":"evil"}'),
        ("DELETE", "projects/digits", b"{}"),
        ("POST", "trash/remove", b'{"runs":["a"]}'),
    ]
    for method, path, body in requests:
        sent = {"content-type": "application/json", **headers}
        response = client.request(method, f"/api/v1/{path}", headers=sent, content=body)
        assert response.status_code in (403, 422), (method, path, response.text)
    assert ids(client, project="digits") == ["c", "b", "a"]
    assert client.ask("runs/a")["name"] == "a"


def test_a_folder_that_is_read_only_is_named() -> None:
    with folder_without_root() as folder:
        Monitor(folder, "a")
        client = Client(folder)
        (folder / "runs" / "a").chmod(0o500)
        responses: list[httpx.Response] = [
            client.request("PATCH", "/api/v1/runs/a", json={"name": "x"}),
            client.request("DELETE", "/api/v1/runs/a", json={}),
        ]
        body = {"runs": [{"id": "a"}], "do": "delete"}
        (result,) = change(client, "POST", "runs/bulk", **body)["results"]
        (folder / "runs" / "a").chmod(0o700)
        for response in responses:
            assert response.status_code == 403
        for error in (*(response.json()["error"] for response in responses), result["error"]):
            assert f"{folder}/runs/a: Permission denied: the run was not changed" in error
            assert "a user who may write to this folder can change it" in error
        assert ids(client) == ["a"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "x" * 257}, "name"),
        ({"tags": [""]}, "tags"),
        ({"starred": "perhaps"}, "starred"),
        ({"unknown": 1}, "unknown"),
        ({"author": "ada"}, "author"),
    ],
)
def test_wrong_changes_are_refused(runs: Path, client: Client, body: dict[str, Any], field: str) -> None:
    response = client.request("PATCH", "/api/v1/runs/a", json=body)
    assert (response.status_code, field in response.json()["error"]) == (422, True)
    assert not list((runs / "runs" / "a").glob("edit.*"))


def test_a_run_cannot_be_stopped_here(runs: Path, client: Client) -> None:
    response = client.request("POST", "/api/v1/runs/a/stop", json={})
    assert response.status_code == 405
    assert "can stop runs" in response.json()["error"]


def test_the_trash_is_emptied_only_of_what_is_in_it(runs: Path, client: Client) -> None:
    Monitor(runs, "running", start_ms=client.now_ms).sample(client.now_ms, {"cpu": 1.0})
    (runs / "apart").mkdir()
    (runs / "apart" / "kept").write_text("kept")
    (runs / "runs" / "a" / "link").symlink_to(runs / "apart")
    for name in ("a", "running"):
        change(client, "DELETE", f"runs/{name}")
    result = change(client, "POST", "trash/remove", runs=["a", "b", "running", "no", "../a", "a"])
    assert result["removed"] == ["a"]
    assert "not in the trash" in result["kept"]["b"]
    assert "still running" in result["kept"]["running"]
    assert "no run 'no'" in result["kept"]["no"]
    assert "invalid run id" in result["kept"]["../a"]
    assert sorted(path.name for path in (runs / "runs").iterdir()) == ["b", "c", "running"]
    assert (runs / "apart" / "kept").read_text() == "kept"
    assert ids(client, deleted=True) == ["running"]
    response = client.request("POST", "/api/v1/runs/a/restore", json={})
    assert response.status_code == 404
