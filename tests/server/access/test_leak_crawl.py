"""The whole API, crawled by who may read nothing of a team whose runs have a marked word in everything."""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx
import pytest

from runvitals.server.audit.storage.audit import CLI
from tests.patience import PATIENCE_S
from tests.server.access.declared_routes import declared_routes
from tests.server.access.organisation import NOW, OTHER_TEAM, TEAM, ServedOrganisation, served_organisation

MARK = "zebra"


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedOrganisation]:
    """An organisation in which everything of the team `vision` has a marked word in it."""
    with served_organisation(tmp_path_factory.mktemp("marked")) as served:
        now_ms = time.time_ns() // 1_000_000
        envelope = {
            "run": f"{MARK}-run",
            "writer": f"monitor.{MARK}",
            "project": f"{MARK}-project",
            "entity": TEAM,
            "seq": 1,
            "about": {
                "role": "monitor",
                "host": f"{MARK}-host",
                "interval_s": 3600,
            },  # it stays running
            "keys": [f"{MARK}.key", "cpu"],
            "t": [now_ms],
            "v": [[1.0], [2.0]],
            "records": [
                [
                    1,
                    "info",
                    {
                        "t": now_ms,
                        "config": {f"{MARK}_lr": 0.1},
                        "summary": {f"{MARK}_loss": 0.5},
                        "run": {"name": f"{MARK} name", "tags": [f"{MARK}-tag"], "notes": f"{MARK} notes"},
                    },
                ],
                [2, "event", {"t": now_ms, "name": "alert", "level": "warn", "text": f"{MARK} alert"}],
            ],
        }
        response = served.ask("bob", "POST", "/api/v1/ingest", json=envelope)
        assert response.status_code == 200, response.text
        served.accounts.guest_links.create(CLI, NOW, project_id=served.metadata_store.projects.id("team"))
        yield served


QUERIES = (
    "",
    f"?text={MARK}",
    f"?where=config.{MARK}_lr>0",
    f"?sort=summary.{MARK}_loss",
    f"?tag={MARK}-tag",
    f"?project={MARK}-project",
    "?deleted=true",
    f"?metric={MARK}.key",
    "?metric=*",
    "?metric=cpu&group_by=host",
    "?keys=*",
)


def crawl(served: ServedOrganisation, who: str | None) -> dict[str, httpx.Response]:
    """The answer of every GET route, with queries that would find what is marked."""
    texts = {}
    values = {
        "run": f"{MARK}-run",
        "project": f"{MARK}-project",
        "team": TEAM,
        "entity": TEAM,
        "user": "bob",
        "member": "bob",
        "host": f"{MARK}-host",
    }
    with httpx.Client(base_url=served.url, headers=served.headers(who), timeout=PATIENCE_S) as client:
        for route in declared_routes(served.served.app.api.routes):
            if route.method != "GET":
                continue
            path = route.path.replace(":path", "")
            for name in route.parameters:
                path = path.replace(f"{{{name}}}", values.get(name, "1"))
            for query in QUERIES if not route.parameters else ("",):
                with client.stream("GET", path + query) as response:
                    if not is_stream(response):
                        response.read()
                    texts[path + query] = response
    return texts


GIVEN = (
    f"sort='summary.{MARK}_loss'",  # as validation shows it
    f"{MARK}-run",
    f"{MARK}-project",
    f"{MARK}-host",
    f"{MARK}.key",
    *(query[1:] for query in QUERIES if query),
)
"""What the requests name, and errors may repeat."""


@pytest.mark.parametrize("who", ["otto", None], ids=str)
def test_nothing_of_another_team_is_in_any_answer(marked: ServedOrganisation, who: str | None) -> None:
    for path, response in crawl(marked, who).items():
        assert not is_stream(response), path
        text = response.text.replace(f'"metric":"{MARK}.key"', "")
        if response.status_code >= 400:
            for part in GIVEN:
                text = text.replace(part, "")
        assert response.status_code < 500, (path, text)
        assert MARK not in text, (path, response.status_code, text[:500])


def test_the_crawl_finds_it_for_the_team_itself(marked: ServedOrganisation) -> None:
    responses = {
        path: response.text
        for path, response in crawl(marked, "bob").items()
        if response.status_code == 200 and not is_stream(response)
    }
    texts = {path for path, text in responses.items() if MARK in text}
    for path in (
        "/api/v1/projects",
        "/api/v1/runs",
        "/api/v1/fields",
        "/api/v1/latest?keys=*",
        "/api/v1/hosts",
    ):
        assert path in texts
    assert OTHER_TEAM not in responses["/api/v1/projects"]


def is_stream(response: httpx.Response) -> bool:
    return response.headers.get("content-type", "").startswith("text/event-stream")
