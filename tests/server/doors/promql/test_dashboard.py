"""The dashboard of the documentation: its queries against our server, as Grafana makes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
import pytest

from runvitals.model.metrics.prometheus import to_prometheus
from runvitals.server.audit.storage.audit import CLI
from tests.patience import PATIENCE_S
from tests.server.accounts_server import T0, accounts_server
from tests.server.doors.remote_write.messages import post, version_1

DASHBOARD = json.loads((Path(__file__).parents[4] / "docs/assets/grafana-dashboard.json").read_text())
KEYS = [
    "gpu.0.gpu", "gpu.0.memoryAllocated", "gpu.0.powerWatts", "gpu.0.temp", "gpu.0.energyJoules",
    "gpu.0.smActive", "gpu.0.pipeTensorActive", "cpu.mean", "memory_percent", "system.load1",
    "network.sent", "network.recv", "disk.in", "disk.out", "disk./.usagePercent",
]  # fmt: skip
EXPRESSIONS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]


STEP_MS = 15_000


class Grafana(NamedTuple):
    """Whoever looks at the dashboard with a key."""

    url: str
    key: str

    def ask(self, path: str, method: str = "POST", **parameters: Any) -> Any:
        arguments = {"data": parameters} if method == "POST" else {"params": parameters}
        headers = {"authorization": f"Bearer {self.key}"}
        address = f"{self.url}/prometheus/api/v1/{path}"
        response = httpx.request(method, address, headers=headers, timeout=PATIENCE_S, **arguments)
        assert response.status_code == 200, response.text
        return response.json()["data"]


class Viewers(NamedTuple):
    member: Grafana
    stranger: Grafana


@pytest.fixture(scope="module")
def viewers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewers]:
    """A member of the team that has a run with all that the dashboard shows, and another user."""
    with accounts_server(tmp_path_factory.mktemp("dashboard")) as server:
        now_ms, accounts = server.clock(), server.accounts
        server.user("rita", org_role="admin")
        keys = {}
        for name in ("alice", "otto"):
            user = server.user(name)
            keys[name], _ = accounts.keys.create(name, CLI, now_ms, user_id=user.id, scope="full")
        accounts.teams.create("vision", CLI, now_ms, administrator=accounts.users.by_name("alice").id)
        server.app.services.access.rights_changed()
        times = [now_ms - STEP_MS * tick for tick in range(40, 0, -1)]
        send(server.url, keys["alice"], times)
        yield Viewers(Grafana(server.url, keys["alice"]), Grafana(server.url, keys["otto"]))


def send(url: str, key: str, times: list[int]) -> None:
    """Samples as our own monitor and training send them, and one series by remote write."""
    about = {"role": "monitor", "host": "n1", "started_ms": times[0]}
    rows = [[float(tick + column) for column in range(len(KEYS))] for tick in range(len(times))]
    system = {"run": "r1", "writer": "monitor.n1.1", "entity": "vision", "project": "atlas", "seq": 0,
              "about": about, "keys": KEYS, "t": times, "v": np.array(rows).T.tolist()}  # fmt: skip
    logged = {**system, "writer": "train.n1.7.1", "about": {**about, "role": "train", "pid": 7},
              "keys": ["loss"], "v": [[0.5] * len(times)], "step": list(range(len(times)))}  # fmt: skip
    headers = {"authorization": f"Bearer {key}"}
    for envelope in (system, logged):
        response = httpx.post(f"{url}/api/v1/ingest", json=envelope, headers=headers, timeout=PATIENCE_S)
        assert response.status_code == 200, response.text
    other = {"__name__": "queue_size", "host": "n1", "runvitals_run": "r1", "queue": "a"}
    placed = {"x-runvitals-entity": "vision", "x-runvitals-project": "atlas", **headers}
    sent = post(url, version_1([(other, [(t, 3.0) for t in times])]), **placed)
    assert sent.status_code == 204, sent.text


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_each_panel_has_values_for_who_may_read_them(viewers: Viewers, expression: str) -> None:
    query = expression.replace("$__rate_interval", "1m")
    for name, value in (("project", "atlas"), ("run", "r1|r2"), ("host", ".+"), ("key", ".+")):
        query = query.replace(f"${name}", value)
    over = {"query": query, "start": T0 / 1000 - 300, "end": T0 / 1000, "step": 15}
    shown, hidden = (viewer.ask("query_range", **over)["result"] for viewer in viewers)
    assert shown, query
    assert shown[0]["values"]
    assert hidden == []


def test_the_variables(viewers: Viewers) -> None:
    span = {"start": T0 / 1000 - 300, "end": T0 / 1000}
    names = [variable["name"] for variable in DASHBOARD["templating"]["list"]]
    assert names == ["datasource", "project", "run", "host", "key"]
    expected = {"project": ["atlas"], "run": ["r1"], "host": ["n1"], "key": ["loss"], "entity": ["vision"]}
    for label, values in expected.items():
        assert viewers.member.ask(f"label/{label}/values", "GET", **span) == values
        assert viewers.stranger.ask(f"label/{label}/values", "GET", **span) == []


def test_names_and_units_are_those_of_our_prometheus_destination(viewers: Viewers) -> None:
    once = {"time": T0 / 1000 - 15}
    found = viewers.member.ask("query", query='{run="r1"}', **once)["result"]
    names = {series["metric"]["__name__"] for series in found}
    assert names == {
        *(to_prometheus(key)[0].sample for key in KEYS),
        "runvitals_log",
        "runvitals_log_step",
        "queue_size",
    }
    power = viewers.member.ask("query", query="runvitals_gpu_utilization_ratio", **once)["result"]
    assert power[0]["metric"]["device"] == "0"
    assert float(power[0]["value"][1]) == 0.39  # 39 %
    (other,) = viewers.member.ask("query", query="queue_size", **once)["result"]
    labels = {"run": "r1", "project": "atlas", "entity": "vision", "host": "n1"}
    assert other["metric"] == {"__name__": "queue_size", "queue": "a", **labels}


def test_without_a_key_nothing_is_answered(viewers: Viewers) -> None:
    for path in ("query?query=up", "labels", "series?match[]=up", "label/run/values"):
        response = httpx.get(f"{viewers.member.url}/prometheus/api/v1/{path}", timeout=PATIENCE_S)
        assert response.status_code == 401, path


def test_a_stranger_cannot_write_into_the_run(viewers: Viewers) -> None:
    labels = {"__name__": "queue_size", "host": "n1", "runvitals_run": "r1"}
    headers = {"authorization": f"Bearer {viewers.stranger.key}", "x-runvitals-entity": "vision"}
    response = post(viewers.stranger.url, version_1([(labels, [(T0, 4.0)])]), **headers)
    assert response.status_code in (403, 404)
