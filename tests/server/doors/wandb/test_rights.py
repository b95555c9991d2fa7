"""What the key of a wandb client allows: what it allows our own clients."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from runvitals.server.audit.storage.audit import CLI, AuditFilter
from tests.patience import PATIENCE_S
from tests.server.doors.wandb.conftest import UPSERT
from tests.server.doors.wandb.test_file_stream import rows
from tests.server.doors.wandb.test_uploads import CREATE
from tests.server.serving import Served, serving

NOW = 1_760_000_000_000
VIEWER = "{ viewer { username entity teams { edges { node { name } } } } }"
UPSERT_SWEEP = """mutation UpsertSweep($id: ID, $config: String, $project: String, $entity: String,
    $state: String) {
  upsertSweep(input: {id: $id, config: $config, projectName: $project, entityName: $entity, state: $state}) {
    sweep { id name } configValidationWarnings } }"""
CREATE_AGENT = """mutation CreateAgent($project: String, $entity: String, $sweep: String!) {
  createAgent(input: {host: "node1", projectName: $project, entityName: $entity, sweep: $sweep}) {
    agent { id } } }"""
HEARTBEAT = """mutation Heartbeat($id: ID!) {
  agentHeartbeat(input: {id: $id, metrics: "{}", runState: "{}"}) { commands } }"""
RESUME = """query RunResumeStatus($project: String, $entity: String, $name: String!) {
  model(name: $project, entityName: $entity) { id name entity { id name }
    bucket(name: $name, missingOk: true) { id name summaryMetrics displayName logLineCount historyLineCount
      eventsLineCount historyTail eventsTail config tags notes wandbConfig(keys: ["t"]) } } }"""


@dataclass
class Users:
    """A server with users, and their keys by name."""

    served: Served
    keys: dict[str, str]

    def post(self, user: str | None, path: str, body: Any) -> httpx.Response:
        headers = {}
        if user is not None:
            basic = base64.b64encode(f"api:{self.keys[user]}".encode()).decode()
            headers["authorization"] = f"Basic {basic}"
        return httpx.post(f"{self.served.url}{path}", json=body, headers=headers, timeout=PATIENCE_S)

    def graphql(self, user: str, query: str, **variables: Any) -> Any:
        return self.post(user, "/graphql", {"query": query, "variables": variables}).json()


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Users]:
    with serving(tmp_path_factory.mktemp("rights")) as served:
        accounts = served.metadata_store.accounts
        keys = {}
        for name, role, scope in (
            ("rita", "admin", "write"),
            ("bo", "member", "write"),
            ("ina", "member", "ingest"),
        ):
            user = accounts.users.create(name, CLI, NOW, org_role=role)
            keys[name], _ = accounts.keys.create("a", CLI, NOW, user_id=user.id, scope=scope)
        served.app.services.access.rights_changed()
        yield Users(served, keys)


def begin(users: Users, user: str, entity: str | None, name: str) -> Any:
    return users.graphql(user, UPSERT, name=name, project="digits", entity=entity, host="node1")


def test_keys_are_long_enough_for_the_client(users: Users) -> None:
    assert all(len(key.partition("-")[2]) >= 40 for key in users.keys.values())


def test_the_viewer_is_the_owner_of_the_key(users: Users) -> None:
    viewer = users.graphql("bo", VIEWER)["data"]["viewer"]
    assert (viewer["username"], viewer["entity"]) == ("bo", "bo")


def test_without_a_key_there_is_nothing(users: Users) -> None:
    assert users.post(None, "/graphql", {"query": VIEWER}).status_code == 401
    assert users.post(None, "/files/bo/digits/r/file_stream", {}).status_code == 401


@pytest.mark.parametrize("user", ["bo", "ina"])
def test_a_user_logs_to_their_own_space_and_resumes(users: Users, user: str) -> None:
    begun = begin(users, user, None, f"of-{user}")["data"]["upsertBucket"]
    assert begun["bucket"]["project"]["entity"]["name"] == user
    path = f"/files/{user}/digits/of-{user}/file_stream"
    assert users.post(user, path, {"files": rows(0, 3)}).status_code == 200
    model = users.graphql(user, RESUME, project="digits", entity=user, name=f"of-{user}")["data"]["model"]
    assert model["bucket"]["historyLineCount"] == 3
    assert "t" in json.loads(model["bucket"]["wandbConfig"])
    created = users.graphql(user, CREATE, entity=user, project="digits", run=f"of-{user}", files=["x"])
    address = created["data"]["createRunFiles"]["files"][0]["uploadUrl"]
    assert users.keys[user] not in address
    assert httpx.put(address, content=b"x", timeout=PATIENCE_S).status_code == 200


def test_nobody_logs_to_the_space_of_somebody_else(users: Users) -> None:
    begin(users, "rita", None, "hers")
    response = begin(users, "bo", "rita", "hers")
    assert response["data"]["upsertBucket"] is None
    assert response["errors"][0]["extensions"]["code"] in (403, 404)
    for path in ("/files/rita/digits/hers/file_stream", "/files/nobody/digits/hers/file_stream"):
        assert users.post("bo", path, {"files": rows(0, 3)}).status_code in (403, 404)
    model = users.graphql("bo", RESUME, project="digits", entity="rita", name="hers")["data"]["model"]
    assert model is None or model["bucket"] is None
    uploads = users.graphql("bo", CREATE, entity="rita", project="digits", run="hers", files=["x"])
    assert uploads["data"]["createRunFiles"] is None


def test_a_sweep_belongs_to_who_made_it(users: Users) -> None:
    config = "{method: random, parameters: {lr: {min: 0.0, max: 1.0}}}"
    made = users.graphql("bo", UPSERT_SWEEP, config=config, project="search", entity="bo")
    sweep = made["data"]["upsertSweep"]["sweep"]
    agent = users.graphql("bo", CREATE_AGENT, project="search", entity="bo", sweep=sweep["name"])
    number = agent["data"]["createAgent"]["agent"]["id"]
    assert users.graphql("bo", HEARTBEAT, id=number)["data"]["agentHeartbeat"]["commands"] != "[]"
    for refused in (
        users.graphql("rita", UPSERT_SWEEP, config=config, project="search", entity="bo"),
        users.graphql("ina", UPSERT_SWEEP, config=config, project="search", entity="bo"),
        users.graphql("rita", UPSERT_SWEEP, id=sweep["id"], state="CANCELED"),
        users.graphql("ina", UPSERT_SWEEP, id=sweep["id"], state="CANCELED"),
        users.graphql("rita", CREATE_AGENT, project="search", entity="bo", sweep=sweep["name"]),
    ):
        assert refused["errors"][0]["extensions"]["code"] in (403, 404), refused
    # As for an agent whose sweep was deleted: numbers of agents say nothing to others.
    told = users.graphql("rita", HEARTBEAT, id=number)["data"]["agentHeartbeat"]
    assert json.loads(told["commands"]) == [{"type": "exit"}]
    assert users.graphql("bo", UPSERT_SWEEP, id=sweep["id"], state="CANCELED")["data"]["upsertSweep"]
    events = users.served.metadata_store.accounts.audit.page(AuditFilter(action="sweep.*"))
    assert [(event.action, event.project, event.after) for event in events if event.outcome == "ok"] == [
        ("sweep.control", "search", {"state": "canceled"})
    ]


def test_the_address_of_an_upload_ends_with_the_right(users: Users) -> None:
    begin(users, "bo", None, "ended")
    created = users.graphql("bo", CREATE, entity="bo", project="digits", run="ended", files=["x"])
    address = created["data"]["createRunFiles"]["files"][0]["uploadUrl"]
    assert httpx.put(address, content=b"x", timeout=PATIENCE_S).status_code == 200
    accounts = users.served.metadata_store.accounts
    bo = accounts.users.by_name("bo")
    accounts.users.update(bo.id, CLI, NOW, state="suspended")
    users.served.app.services.access.rights_changed()
    try:
        response = httpx.put(address, content=b"y", timeout=PATIENCE_S)
        assert (response.status_code, "may not use it any more" in response.text) == (403, True)
    finally:
        accounts.users.update(bo.id, CLI, NOW, state="active")
        users.served.app.services.access.rights_changed()
    assert httpx.put(address, content=b"z", timeout=PATIENCE_S).status_code == 200


def test_the_address_of_an_upload_ends_with_the_key(users: Users) -> None:
    begin(users, "ina", None, "revoked")
    created = users.graphql("ina", CREATE, entity="ina", project="digits", run="revoked", files=["x"])
    address = created["data"]["createRunFiles"]["files"][0]["uploadUrl"]
    accounts = users.served.metadata_store.accounts
    user = accounts.users.by_name("ina")
    (key,) = accounts.keys.all(user_id=user.id)
    accounts.keys.revoke(key.id, CLI, NOW)
    users.served.app.services.access.rights_changed()
    assert httpx.put(address, content=b"x", timeout=PATIENCE_S).status_code == 403
    users.keys["ina"], _ = accounts.keys.create("b", CLI, NOW, user_id=user.id, scope="ingest")


def test_uploads_need_no_token_where_requests_do(tmp_path_factory: pytest.TempPathFactory) -> None:
    with serving(tmp_path_factory.mktemp("tokens"), token_required=True) as served:
        address = f"{served.url}/wandb/signed/run-files/{'A' * 80}"
        assert httpx.put(address, content=b"x", timeout=PATIENCE_S).status_code == 403


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ('upsertModel(input: {name: "wrong", description: "%s"}) { inserted }' % ("x" * 501), "too long"),
        ('upsertModel(input: {name: "%s"}) { inserted }' % ("x" * 129), "invalid project name"),
        (
            'createArtifact(input: {entityName: "bo", projectName: "digits", artifactTypeName: "d", '
            'digest: "d", digestAlgorithm: MANIFEST_MD5, ttlDurationSeconds: "--5"}) { artifact { id } }',
            "expected an integer",
        ),
    ],
)
def test_wrong_values_are_errors_of_the_client(users: Users, operation: str, message: str) -> None:
    response = users.graphql("bo", f"mutation {{ {operation} }}")
    assert response["errors"][0]["extensions"]["code"] == 422
    assert message in response["errors"][0]["message"]
