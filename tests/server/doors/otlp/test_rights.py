"""What keys may send by OTLP, and rules of a project that choose its runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import grpc
import httpx
import pytest
from google.rpc.status_pb2 import Status

from runvitals.server.doors.otlp.grpc_server import OtlpGrpcServer
from tests.server.access.organisation import ServedOrganisation, served_organisation
from tests.server.doors.otlp.messages import gauge, request

PERMISSION_DENIED, UNAUTHENTICATED = 7, 16


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedOrganisation]:
    with served_organisation(tmp_path_factory.mktemp("otlp-rights")) as served:
        yield served


def message(**resource: Any) -> bytes:
    point = {"time_unix_nano": int(time.time()) * 10**9, "as_double": 1.0}
    return request(resource, gauge("queue", "1", point)).SerializeToString()


def post(seen: ServedOrganisation, who: str | None, body: bytes, **headers: str) -> httpx.Response:
    sent = {"content-type": "application/x-protobuf"}
    sent |= {f"x-runvitals-{name}": text for name, text in headers.items()}
    return seen.ask(who, "POST", "/v1/metrics", content=body, headers=sent)


def test_a_key_sends_where_its_owner_may_log(seen: ServedOrganisation) -> None:
    body = message(**{"runvitals.run": "otlp-1"})
    assert post(seen, "bob", body, entity="vision", project="team").status_code == 200
    run = seen.ask("vera", "GET", "/api/v1/runs/otlp-1").json()
    assert (run["project"], run["entity"], run["author"]["name"]) == ("team", "vision", "bob")


@pytest.mark.parametrize(
    ("who", "status", "code", "why"),
    [
        ("vera", 403, PERMISSION_DENIED, "vera may look at vision/team, not log to it"),
        ("otto", 403, PERMISSION_DENIED, "there is no entity 'vision'"),
        (None, 401, UNAUTHENTICATED, ""),
    ],
)
def test_others_are_refused(
    seen: ServedOrganisation, who: str | None, status: int, code: int, why: str
) -> None:
    response = post(seen, who, message(**{"runvitals.run": "otlp-2"}), entity="vision", project="team")
    assert response.status_code == status
    assert response.headers["content-type"] == "application/x-protobuf"
    found = Status.FromString(response.content)
    assert found.code == code
    assert why in found.message


def test_rules_of_the_project_choose_the_run(seen: ServedOrganisation) -> None:
    path = "/api/v1/entities/vision/projects/organisation/routing-rules"
    rules = {"rules": {"run": ["{trial}"], "host": ["{machine}"], "run_name": ["trial {trial}"]}}
    assert seen.ask("alice", "PUT", path, json=rules).status_code == 200
    body = message(trial="t7", machine="m1", **{"service.name": "x", "service.instance.id": "1"})
    assert post(seen, "bob", body, entity="vision", project="organisation").status_code == 200
    run = seen.ask("bob", "GET", "/api/v1/runs/t7").json()
    assert (run["name"], run["project"], run["hosts"][0]["name"]) == ("trial t7", "organisation", "m1")


def test_a_renamed_run_keeps_its_name(seen: ServedOrganisation) -> None:
    body = message(**{"runvitals.run": "otlp-3", "runvitals.run.name": "first"})
    assert post(seen, "bob", body, entity="vision", project="team").status_code == 200
    assert seen.ask("bob", "PATCH", "/api/v1/runs/otlp-3", json={"name": "mine"}).status_code == 200
    seen.served.app.services.otlp().forget()  # as after a restart
    assert post(seen, "bob", body, entity="vision", project="team").status_code == 200
    assert seen.ask("bob", "GET", "/api/v1/runs/otlp-3").json()["name"] == "mine"


def test_keys_in_the_metadata_of_grpc(seen: ServedOrganisation) -> None:
    body = message(**{"runvitals.run": "otlp-4"})
    with (
        OtlpGrpcServer("127.0.0.1:0", seen.served.address) as server,
        grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel,
    ):
        export = channel.unary_unary("/opentelemetry.proto.collector.metrics.v1.MetricsService/Export")
        metadata = (("x-runvitals-entity", "vision"), ("x-runvitals-project", "team"))
        key = ("authorization", f"Bearer {seen.keys['bob']}")
        assert export(body, metadata=(key, *metadata)) == b""
        with pytest.raises(grpc.RpcError) as raised:
            export(body, metadata=metadata)
        assert raised.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert seen.ask("vera", "GET", "/api/v1/runs/otlp-4").json()["project"] == "team"
