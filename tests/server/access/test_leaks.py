"""What another team has shows nowhere: not in files, names, conflicts, caches, or the work of a response.

Lists, totals, searches, aggregates and cursors are in `test_lists.py`, all routes in `test_leak_crawl.py`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from runvitals.server.audit.storage.audit import CLI
from tests.patience import PATIENCE_S
from tests.server.access.declared_routes import declared_routes
from tests.server.access.organisation import NOW, OTHER_TEAM, TEAM, ServedOrganisation
from tests.server.request_statements import request_statements
from tests.server.serving import serving

HIDDEN, MISSING = "voice-otto", "voice-nina"
"""A run of the other team, and an id of the same length that no run has."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedOrganisation]:
    """An organisation of whose teams carol knows one: the other is hidden.

    Its clocks stand still, so that nothing in its caches gets old.
    """
    with serving(tmp_path_factory.mktemp("leaks"), clock=lambda: NOW, monotonic=lambda: 0.0) as server:
        served = ServedOrganisation(server)
        served.accounts.teams.update(OTHER_TEAM, CLI, NOW, hidden=True)
        served.rights_changed()
        yield served


def same(served: ServedOrganisation, method: str, path: str, names: tuple[str, str], **how: Any) -> None:
    """Check that carol gets the same response with a name that is secret and with one that is none."""
    responses = []
    for name in names:
        body = {field: value.replace("NAME", name) for field, value in how.get("json", {}).items()}
        more = {"json": body} if body else {}
        headers = how.get("headers", {})
        response = served.ask("carol", method, path.replace("NAME", name), headers=headers, **more)
        assert response.status_code in (403, 404), (path, response.status_code, response.text)
        shown = {
            key: value
            for key, value in response.headers.items()
            if key not in ("date", "content-length", "x-request-id")
        }
        responses.append((response.status_code, response.text.replace(name, "NAME"), shown))
    assert responses[0] == responses[1], path


@pytest.mark.parametrize(
    "accept", ["text/csv", "application/vnd.apache.arrow.stream", "application/vnd.apache.parquet"]
)
@pytest.mark.parametrize("table", ["series?keys=*", "history", "statistics", "console", "events"])
def test_files_of_a_run(served: ServedOrganisation, table: str, accept: str) -> None:
    same(served, "GET", f"/api/v1/runs/NAME/{table}", (HIDDEN, MISSING), headers={"accept": accept})


def test_live_streams_and_long_polls_of_a_run(served: ServedOrganisation) -> None:
    for query in ("", "?since=0", "?wait_s=1"):
        path = f"/api/v1/runs/NAME/live{query}"
        responses = [
            served.ask("carol", "GET", path.replace("NAME", name), headers={"last-event-id": "1"})
            for name in (HIDDEN, MISSING)
        ]
        assert responses[0].status_code == responses[1].status_code != 200
        assert responses[0].text.replace(HIDDEN, "") == responses[1].text.replace(MISSING, "")


def test_every_route_of_a_hidden_team(served: ServedOrganisation) -> None:
    """Names of teams that are hidden are told by no route but the one that creates a team."""
    checked = 0
    for route in declared_routes(served.served.app.api.routes):
        name = next((name for name in ("team", "entity") if name in route.parameters), None)
        if name is None or route.permission == "filtered project:read":
            continue
        path = route.path.replace(f"{{{name}}}", "NAME")
        for other in route.parameters - {name}:
            path = path.replace(f"{{{other}}}", "0" * 32 if other == "digest" else "1")
        same(served, route.method, path, (OTHER_TEAM, "spiral"), headers={"content-type": "application/json"})
        checked += 1
    assert checked >= 30
    listed = [
        served.ask("carol", "GET", f"/api/v1/entities/{name}/projects").json()
        for name in (OTHER_TEAM, "spiral")
    ]
    assert listed[0] == listed[1]


def test_names_of_projects_elsewhere(served: ServedOrganisation) -> None:
    """A name that another team has given is free in one's own team, and cannot be told from others."""
    run = {
        "run": "of-carol",
        "writer": "w",
        "seq": 1,
        "entity": TEAM,
        "project": "voice",
        "keys": ["a"],
        "t": [NOW],
    }
    assert served.ask("carol", "POST", "/api/v1/ingest", json={**run, "v": [[1.0]]}).status_code == 200
    assert served.ask("carol", "GET", "/api/v1/runs/of-carol").json()["project"] == "voice"
    refused = [
        served.ask(
            "carol",
            "POST",
            "/api/v1/ingest",
            json={**run, "entity": OTHER_TEAM, "project": name, "v": [[1.0]]},
        )
        for name in ("voice", "vowel")
    ]
    texts = [
        response.text.replace(name, "") for response, name in zip(refused, ("voice", "vowel"), strict=True)
    ]
    assert refused[0].status_code == refused[1].status_code != 200
    assert texts[0] == texts[1]
    assert "voice" in [row["name"] for row in served.ask("carol", "GET", "/api/v1/projects").json()]
    assert (
        served.ask(
            "alice", "PATCH", f"/api/v1/entities/{TEAM}/projects/voice", json={"name": "organ"}
        ).status_code
        == 200
    )


def test_moves_to_another_team(served: ServedOrganisation) -> None:
    """Neither that a run of this id is there, nor that the project is."""
    served.add_run("twin", "team", TEAM, "carol")
    served.add_run("twin", "voice", OTHER_TEAM, "otto")
    target = {"entity": OTHER_TEAM, "project": "NAME"}
    same(served, "POST", "/api/v1/runs/twin/move", ("voice", "vowel"), json=target)
    same(served, "POST", "/api/v1/runs/team-carol/move", ("voice", "vowel"), json=target)
    same(
        served,
        "POST",
        "/api/v1/runs/team-carol/move",
        (OTHER_TEAM, "spiral"),
        json={"entity": "NAME", "project": "voice"},
    )


def test_runs_of_one_device_elsewhere(served: ServedOrganisation) -> None:
    used = "GPU-5f1c7e3a-0000-4000-8000-000000000001"
    now_ms = time.time_ns() // 1_000_000
    gpu = {"index": 0, "uuid": used, "name": "H100", "pci": "0000:01:00.0"}
    facts = {"t": now_ms, "devices": {"gpu": [gpu]}, "gpu": [gpu]}
    sent = {
        "run": "on-device",
        "writer": "monitor.secret-node.1",
        "seq": 1,
        "entity": OTHER_TEAM,
        "project": "voice",
        "about": {"interval_s": 3600, "host": "secret-node"},
        "keys": ["gpu.0.gpu"],
        "t": [now_ms],
        "v": [[1.0]],
        "records": [[1, "info", facts]],
    }
    assert served.ask("otto", "POST", "/api/v1/ingest", json=sent).status_code == 200
    for path in ("runs", "latest", "aggregate?metric=gpu.0.gpu&group_by=host"):
        for device in (used, "GPU-other", "secret-node/0000:01:00.0"):
            query = f"{'&' if '?' in path else '?'}device={device}"
            response = served.ask("carol", "GET", f"/api/v1/{path}{query}")
            assert "on-device" not in response.text
            assert "secret-node" not in response.text.replace(device, "")


def test_what_a_browser_kept_of_anothers_response_is_not_confirmed(served: ServedOrganisation) -> None:
    """No validator of a cached response is answered before the rights are checked."""
    for path in ("/api/v1/runs/team-bob", "/api/v1/runs", "/api/v1/projects", f"/api/v1/teams/{TEAM}"):
        first = served.ask("bob", "GET", path)
        assert first.headers["cache-control"] in ("no-store", "private, no-store"), path
        validators = {
            "if-none-match": first.headers.get("etag", "*"),
            "if-modified-since": "Sun, 22 Nov 2099 00:00:00 GMT",
        }
        response = served.ask("otto", "GET", path, headers=validators)
        assert response.status_code != 304, path


def test_the_metrics_of_the_server_name_nobody(served: ServedOrganisation) -> None:
    text = served.ask("bob", "GET", "/metrics").text
    assert "runvitals_" in text
    for name in (TEAM, OTHER_TEAM, "voice", "team-bob", HIDDEN, "alice", "restricted"):
        assert f'"{name}"' not in text


def test_completions_of_users_show_names_and_nothing_else(served: ServedOrganisation) -> None:
    served.accounts.emails.add(served.users["otto"], "otto@private.example", CLI, NOW)
    users = served.ask("carol", "GET", "/api/v1/users?query=otto").json()["users"]
    assert [set(row) for row in users] == [{"name", "display_name"}]
    for text in ("private", "otto@", "@private.example"):
        assert served.ask("carol", "GET", "/api/v1/users", params={"query": text}).json()["users"] == []


def test_a_new_project_at_the_old_name_of_another(served: ServedOrganisation) -> None:
    """Who may read the renamed project is led there, whether or not there is a new one that is hidden."""
    projects, store = served.accounts.owned_projects, served.metadata_store
    paths = []
    for old, new in (("first", "first-renamed"), ("second", "second-renamed")):
        served.add_run(f"run-{old}", old, TEAM, "bob")
        projects.update(store.projects.id(old), CLI, NOW, name=new)
        paths.append(f"/api/v1/entities/{TEAM}/projects/{old}")
    served.add_run("run-new", "second", TEAM, "bob")
    projects.update(store.projects.id("second"), CLI, NOW, owner_id=served.users["bob"], visibility="private")
    served.rights_changed()
    responses = [served.ask("carol", "GET", path) for path in paths]
    assert [response.status_code for response in responses] == [307, 307]
    assert responses[0].text.replace("first", "NAME") == responses[1].text.replace("second", "NAME")


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/api/v1/runs/NAME", (HIDDEN, MISSING)),
        ("/api/v1/runs/NAME/series?keys=cpu", (HIDDEN, MISSING)),
        ("/api/v1/runs/NAME/findings", (HIDDEN, MISSING)),
        ("/api/v1/entities/speech/projects/NAME", ("voice", "vowel")),
        ("/api/v1/projects/NAME", ("voice", "vowel")),
        ("/api/v1/teams/NAME", (OTHER_TEAM, "spiral")),
        ("/api/v1/entities/NAME/defaults", (OTHER_TEAM, "spiral")),
    ],
)
def test_what_may_not_be_known_takes_the_work_of_what_does_not_exist(
    served: ServedOrganisation, path: str, names: tuple[str, str]
) -> None:
    """Times cannot be compared in a test; the number of statements, which makes the difference, can.

    The fewest of several requests count: rights are cached after the first.
    """
    fewest = []
    with httpx.Client(base_url=served.url, headers=served.headers("carol"), timeout=PATIENCE_S) as client:
        method = "PATCH" if path.startswith("/api/v1/projects/") else "GET"
        for name in names:
            counts = []
            for _ in range(5):
                with request_statements() as statements:
                    body = {"json": {"name": "x"}} if method == "PATCH" else {}
                    assert client.request(method, path.replace("NAME", name), **body).status_code == 404
                counts.append(len(statements))
            fewest.append(min(counts))
    assert fewest[0] == fewest[1]
