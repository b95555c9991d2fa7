"""Requests are counted for the user or service account whose keys and browsers made them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from runvitals.cli import main
from runvitals.model.durations import MINUTE_MS
from runvitals.server.audit.storage.audit import CLI
from tests.patience import PATIENCE_S
from tests.server.accounts_server import T0, AccountsServer, accounts_server

DAY = "2027-01-15"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[AccountsServer]:
    with accounts_server(tmp_path) as running:
        running.user("olga", org_role="admin")
        yield running


def keys(server: AccountsServer) -> tuple[str, str]:
    """A key of the user ada, and one of the service account `nightly` of the team vision."""
    accounts, now_ms = server.accounts, server.clock()
    ada = server.user("ada")
    vision = accounts.teams.create("vision", CLI, now_ms, administrator=ada.id)
    nightly = accounts.service_accounts.create("nightly", vision.id, CLI, now_ms)
    of_ada = accounts.keys.create("mine", CLI, now_ms, user_id=ada.id)[0]
    of_nightly = accounts.keys.create("its", CLI, now_ms, service_account_id=nightly.id)[0]
    server.app.services.access.rights_changed()
    return of_ada, of_nightly


def request(server: AccountsServer, key: str, method: str, path: str, **how: Any) -> int:
    headers = {"authorization": f"Bearer {key}"}
    url = f"{server.url}{path}"
    return httpx.request(method, url, headers=headers, timeout=PATIENCE_S, **how).status_code


def envelope(seq: int) -> dict[str, Any]:
    return {"run": "otter", "writer": "w", "seq": seq, "keys": ["loss"], "t": [T0 + seq], "v": [[1.0]]}


def counted(server: AccountsServer, count: int) -> dict[str | None, int]:
    """The requests by user, once so many are written."""
    end_s = time.monotonic() + PATIENCE_S
    reading = server.metadata_store.usage.reading
    while sum(row.requests for row in reading.requests(DAY, DAY)) < count and time.monotonic() < end_s:
        server.clock.now_ms += MINUTE_MS
        time.sleep(0.1)
    usage_rows = rows(server, "author")
    return {row["author"]: row["requests"] for row in usage_rows}


def rows(server: AccountsServer, by: str, more: str = "") -> list[dict[str, Any]]:
    report: dict[str, Any] = server.ask("olga", "GET", f"usage?month=2027-01&by={by}{more}")
    return list(report["rows"])


def test_requests_are_counted_by_owner(server: AccountsServer, capsys: pytest.CaptureFixture[str]) -> None:
    of_ada, of_nightly = keys(server)
    assert request(server, of_ada, "GET", "/api/v1/runs") == 200
    assert request(server, of_ada, "GET", "/api/v1/runs/unknown") == 404
    for seq in (1, 2, 3):  # those after the first bypass the application
        assert request(server, of_nightly, "POST", "/api/v1/ingest", json=envelope(seq)) == 200
    with server.client("ada") as browser:
        browser.get(f"{server.url}/-/settings/usage")  # the page itself does not count
        assert browser.get("account").status_code == 200
    httpx.get(f"{server.url}/api/v1/about", timeout=PATIENCE_S)  # a visitor
    assert counted(server, 6) == {"ada": 3, None: 3}
    accounts = {row["service_account"]: row["requests"] for row in rows(server, "service_account")}
    assert accounts["nightly"] == 3
    assert [
        (row["service_account"], row["requests"]) for row in rows(server, "service_account", "&entity=vision")
    ] == [("nightly", 3)]
    assert sum(row["requests"] for row in rows(server, "team,project")) == sum(accounts.values()) >= 6
    (own,) = server.ask("ada", "GET", "usage?month=2027-01&by=author&author=me")["rows"]
    assert own["requests"] == 3
    folder = Path(server.store.folder).parent
    where = ["--store", f"{folder}/store", "--catalogue", f"{folder}/catalogue.db"]
    assert main(["usage", "--by", "service_account", "--month", "2027-01", *where]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "nightly" in line)
    assert "3" in line.split()
