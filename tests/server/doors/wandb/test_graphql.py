"""GraphQL of wandb clients: what is unknown, wrong or hostile gets an error in the form they understand."""

from __future__ import annotations

import base64
import json
from typing import Any

import httpx
import pytest
from graphql import get_introspection_query

from runvitals.server.doors.wandb.context import number_of
from runvitals.server.doors.wandb.executor import InvalidArgument
from runvitals.server.doors.wandb.run_ids import check_client_id
from tests.patience import PATIENCE_S
from tests.server.doors.wandb.conftest import Door

VIEWER = "query Viewer { viewer { id entity username email flags teams { edges { node { name } } } } }"
PROBE = """query ProbeServerCapabilities {
    QueryType: __type(name: "Query") { ...fieldData }
    MutationType: __type(name: "Mutation") { ...fieldData }
    ServerInfoType: __type(name: "ServerInfo") { ...fieldData } }
fragment fieldData on __Type { fields { name } }"""

SHARED = {"x-wandb-client-id": "second"}


def test_the_viewer_of_a_server_without_accounts_has_an_entity(door: Door) -> None:
    viewer = door.graphql(VIEWER)["data"]["viewer"]
    assert viewer["entity"] == "main"
    assert json.loads(viewer["flags"]) == {}
    assert viewer["teams"]["edges"] == [{"node": {"name": "main"}}]


def test_the_oldest_client_learns_what_it_may_ask(door: Door) -> None:
    data = door.graphql(PROBE)["data"]
    names = {kind: {field["name"] for field in data[kind]["fields"]} for kind in data}
    assert "serverInfo" in names["QueryType"]
    assert "upsertBucket" in names["MutationType"]
    assert "cliVersionInfo" in names["ServerInfoType"]


def test_tools_can_read_the_whole_schema(door: Door) -> None:
    assert "errors" not in door.graphql(get_introspection_query())


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("query X { nonsense }", "Cannot query field 'nonsense'"),
        ("query { viewer { id }", "Syntax Error"),
        ("{" * 2000, "Syntax Error"),
        ("{ viewer " + "{ teams { edges { node " * 30 + "{ name }" + " } } }" * 30 + " }", "too deeply"),
        ("{ " + "viewer { id } " * 6000 + " }", "tokens"),
        (
            "{ "
            + " ".join(f"a{n}: viewer {{ ...f }}" for n in range(300))
            + " } fragment f on User { "
            + " ".join(f"b{n}: id" for n in range(30))
            + " }",
            "too much",
        ),
        ("query { ...f } fragment f on Query { ...f }", "too deeply"),
        ("{ " + "viewer { id } " * 2000 + " }", "too often"),
        ("{ " + "... on Query { viewer { id } } " * 1000 + " }", "too often"),
        ("{ viewer { " + "...f " * 2000 + " } } fragment f on User { id }", "too often"),
        ("{ __typename } fragment f on Query { " + "viewer { id } " * 2000 + " }", "too often"),
        ("#" * 200_000 + "\n{ __typename }", "too long"),
        (
            "{ " + " ".join(f"a{n}: __schema {{ types {{ fields {{ name }} }} }}" for n in range(200)) + " }",
            "too much about the schema",
        ),
        (
            "{ __schema { types { fields { type { fields { type { fields { name } } } } } } } }",
            "introspection",
        ),
    ],
)
def test_what_cannot_be_executed_is_answered_with_200_and_errors(door: Door, query: str, text: str) -> None:
    body = {"query": query}
    response = httpx.post(f"{door.served.url}/graphql", json=body, timeout=PATIENCE_S)
    assert response.status_code == 200
    assert text in response.json()["errors"][0]["message"]


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"query": 1}', b"\xff"])
def test_a_body_that_is_no_request_is_answered_with_400(door: Door, body: bytes) -> None:
    response = httpx.post(f"{door.served.url}/graphql", content=body, timeout=PATIENCE_S)
    assert response.status_code == 400
    assert "JSON" in response.json()["errors"][0]["message"]


def test_a_large_request_arrives(door: Door) -> None:
    """As `wandb verify` sends it."""
    query = 'query($text: String!) { project(name: "none") { run(name: "", desc: $text) { name } } }'
    assert door.graphql(query, text="a" * 10**7) == {"data": {"project": None}}


def test_a_run_begins_with_what_the_client_sends(door: Door) -> None:
    config = {"lr": {"value": 0.1, "desc": None}, "_wandb": {"value": {"cli_version": "0.31.0"}}}
    sent = {"displayName": "first", "groupName": "sweep-1", "jobType": "train", "notes": "try", "tags": ["a"]}
    begun = door.begin(config=json.dumps(config), **sent)
    assert begun["inserted"]
    assert begun["bucket"]["project"]["name"] == "digits"
    assert begun["bucket"]["project"]["entity"]["name"] == "main"
    run = door.shown()
    assert (run["state"], run["project"], run["name"]) == ("running", "digits", "first")
    assert (run["group"], run["job_type"], run["notes"], run["tags"]) == ("sweep-1", "train", "try", ["a"])
    assert run["config"] == {"lr": 0.1}
    assert [host["name"] for host in run["hosts"]] == ["node1"]


def test_what_is_null_later_stays_as_it_is(door: Door) -> None:
    door.begin(displayName="first", tags=["a"])
    again = door.begin(host=None, config=json.dumps({"lr": {"value": 0.2}}))
    assert not again["inserted"]
    run = door.shown()
    assert (run["name"], run["tags"], run["config"]) == ("first", ["a"], {"lr": 0.2})


def test_a_run_without_a_name_gets_one(door: Door) -> None:
    assert door.begin()["bucket"]["displayName"] == door.shown()["name"] != door.run


def test_the_same_id_in_another_project_is_another_run(door: Door) -> None:
    first, second = door.begin(), door.begin(project="letters")
    assert second["inserted"]
    assert first["bucket"]["id"] != second["bucket"]["id"]
    assert second["bucket"]["name"] == door.run
    assert door.begin(project="letters", host=None)["bucket"]["id"] == second["bucket"]["id"]


def test_an_id_that_is_not_valid_here_becomes_one(door: Door) -> None:
    begun = door.begin(name="läuft 1")
    assert begun["bucket"]["name"] == "läuft 1"
    assert not door.begin(name="läuft 1", host=None)["inserted"]


def config_of(door: Door) -> Any:
    """As stored: what the API shows may be a quarter of a second old."""
    store = door.served.metadata_store
    number = store.runs.places(door.run)[0].run_id
    return store.sections.read([number], ["config"])[number].shared["config"]


def test_a_key_that_the_client_removed_from_the_configuration_is_gone(door: Door) -> None:
    door.begin(config=json.dumps({"lr": {"value": 0.1}, "old": {"value": 1}}))
    door.begin(host=None, config=None)
    assert config_of(door) == {"lr": 0.1, "old": 1}
    door.begin(host=None, config=json.dumps({"lr": {"value": 0.1}}))
    assert config_of(door) == {"lr": 0.1}
    door.begin(config=json.dumps({"of": {"value": "another process"}}), headers=SHARED)
    assert config_of(door) == {"lr": 0.1, "of": "another process"}


@pytest.mark.parametrize("config", ["{", "[]", '{"lr": {"value": ' * 3000])
def test_a_configuration_that_is_no_object_is_an_error_that_names_it(door: Door, config: str) -> None:
    response = door.graphql(
        'mutation($c: JSONString) { upsertBucket(input: {name: "x", config: $c}) { inserted } }', c=config
    )
    assert "config" in response["errors"][0]["message"]


@pytest.mark.parametrize("value", [1, 0.5, True, [None], {"lr": {"value": 0.1}}])
@pytest.mark.parametrize(
    "operation",
    [
        'mutation($x: JSONString) { upsertBucket(input: {name: "x", config: $x}) { inserted } }',
        'query($x: JSONString) { entity(name: "main") { projects(filters: $x) { edges { node { id } } } } }',
    ],
)
def test_json_that_is_not_in_a_text_is_an_error_that_says_so(door: Door, operation: str, value: Any) -> None:
    response = door.graphql(operation, x=value)
    assert "JSON in a text" in response["errors"][0]["message"]


def test_json_that_is_not_in_a_text_is_not_accepted_in_the_query(door: Door) -> None:
    response = door.graphql('mutation { upsertBucket(input: {name: "x", config: 5}) { inserted } }')
    assert "JSON in a text" in response["errors"][0]["message"]


def test_a_project_has_its_runs_however_it_is_asked_for(door: Door) -> None:
    door.begin()
    for operation in ("project", "model"):
        fields = "{ bucket(name: $r) { name } run(name: $r) { name } }"
        query = f"query($p: String, $r: String!) {{ {operation}(name: $p) {fields} }}"
        response = door.graphql(query, p="digits", r=door.run)
        assert response == {"data": {operation: {"bucket": {"name": door.run}, "run": {"name": door.run}}}}


@pytest.mark.parametrize("number", ["2147483648", "9" * 18, "9" * 5000, "-1", "²"])
def test_an_id_that_no_database_has_is_not_valid(number: str) -> None:
    text = base64.b64encode(f"Agent:{number}".encode()).decode()
    with pytest.raises(InvalidArgument, match="invalid id"):
        number_of("Agent", text)


@pytest.mark.parametrize("name", [".", "..", "a%41", "a%", "a/b", "a?b", "a#b", "a\nb", "x" * 513])
def test_a_run_whose_rows_would_be_sent_to_another_address_does_not_begin(door: Door, name: str) -> None:
    response = door.graphql(
        "mutation M($name: String) { upsertBucket(input: {name: $name}) { inserted } }", name=name
    )
    assert "expected 1 to 512 characters without" in response["errors"][0]["message"]


@pytest.mark.parametrize("name", ["...", "-a", "a b", "ü\\<>&~+", "x" * 512])
def test_a_run_with_an_odd_id_begins(name: str) -> None:
    check_client_id(name)


def test_files_of_the_run_that_a_client_begins_or_resumes(door: Door) -> None:
    door.begin()
    mutation = """mutation M($name: String) { upsertBucket(input: {name: $name, modelName: "digits",
        entityName: "main"}) { bucket { fileCount files { edges { node { name } } } } } }"""
    query = """query Q($name: String!) { model(name: "digits", entityName: "main") { bucket(name: $name,
        missingOk: true) { fileCount files { edges { node { name } } } } } }"""
    none = {"fileCount": 0, "files": {"edges": []}}
    assert door.graphql(mutation, name=door.run)["data"]["upsertBucket"]["bucket"] == none
    assert door.graphql(query, name=door.run)["data"]["model"]["bucket"] == none


def test_each_run_of_a_page_has_a_cursor_that_is_a_text(door: Door) -> None:
    for name in (door.run, f"{door.run}-second"):
        door.begin(name=name)
    query = """query Q($first: Int, $after: String) { project(name: "digits", entityName: "main") {
        runs(first: $first, after: $after) { edges { cursor } pageInfo { endCursor hasNextPage } } } }"""
    runs = door.graphql(query, first=50)["data"]["project"]["runs"]
    assert all(isinstance(edge["cursor"], str) for edge in runs["edges"])
    inside = door.graphql(query, first=50, after=runs["edges"][0]["cursor"])
    assert "after='inside'" in inside["errors"][0]["message"]
