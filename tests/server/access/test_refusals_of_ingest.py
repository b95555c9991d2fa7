"""What is refused to who may not know it is refused like what does not exist: in ingest as everywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from runvitals.server.audit.storage.audit import CLI
from runvitals.server.doors.wandb.context import node_id
from tests.server.access.organisation import NOW, OTHER_TEAM, TEAM, ServedOrganisation, served_organisation

LIMIT = "speech has used 12 of 10 hours of its plan; administrators: otto"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedOrganisation]:
    """An organisation whose team `speech` is hidden, and whose teams may start no runs this month."""
    with served_organisation(tmp_path_factory.mktemp("refusals")) as served:
        served.accounts.teams.update(OTHER_TEAM, CLI, NOW, hidden=True)
        served.rights_changed()
        yield served


@pytest.fixture
def over_limit(served: ServedOrganisation) -> Iterator[None]:
    teams = (served.accounts.teams.by_name(name) for name in (TEAM, OTHER_TEAM))
    served.metadata_store.usage.refused = {team.id: LIMIT for team in teams}
    served.rights_changed()
    yield
    served.metadata_store.usage.refused = {}
    served.rights_changed()


def refusal(served: ServedOrganisation, who: str, **envelope: Any) -> str:
    """What a user is told about an envelope that is not admitted."""
    body = {"run": "new", "writer": "w", "seq": 1, "keys": ["a"], "t": [NOW], "v": [[1.0]], **envelope}
    response = served.ask(who, "POST", "/api/v1/ingest", json=body)
    assert response.status_code == 403, response.text
    text: str = response.json()["error"]
    return text


@pytest.mark.parametrize("run", ["new", "voice-otto"])
@pytest.mark.parametrize("secret", [OTHER_TEAM, OTHER_TEAM.upper()])
def test_a_hidden_team_beyond_its_limit(
    served: ServedOrganisation, over_limit: None, secret: str, run: str
) -> None:
    hidden = refusal(served, "carol", entity=secret, run=run)
    missing = refusal(served, "carol", entity="spiral", run=run)
    assert hidden.replace(secret, "NAME") == missing.replace("spiral", "NAME")
    assert "otto" not in hidden


def test_a_key_that_only_reads_finds_no_teams(served: ServedOrganisation, over_limit: None) -> None:
    served.keys["reader"], _ = served.accounts.keys.create(
        "reader", CLI, NOW, user_id=served.users["carol"], scope="read"
    )
    responses = [refusal(served, "reader", entity=name) for name in (OTHER_TEAM, "spiral")]
    assert responses[0] == responses[1]


@pytest.mark.parametrize("project", ["private", "restricted"])
def test_a_hidden_project_for_who_may_create_none(served: ServedOrganisation, project: str) -> None:
    hidden = refusal(served, "vera", entity=TEAM, project=project)
    missing = refusal(served, "vera", entity=TEAM, project="missing")
    assert hidden.replace(project, "NAME") == missing.replace("missing", "NAME")


@pytest.mark.parametrize("project", ["private", "restricted"])
def test_a_run_of_a_hidden_project(served: ServedOrganisation, project: str) -> None:
    hidden = refusal(served, "vera", entity=TEAM, run=f"{project}-bob")
    missing = refusal(served, "vera", entity=TEAM, run="missing")
    assert hidden.replace(f"{project}-bob", "NAME") == missing.replace("missing", "NAME")
    refused = refusal(served, "carol", entity=TEAM, run=f"{project}-bob")
    assert refused == f"the run id '{project}-bob' is taken in vision"  # not by what


def test_who_may_log_to_a_team_is_told_its_limit(served: ServedOrganisation, over_limit: None) -> None:
    assert refusal(served, "carol", entity=TEAM, project="team") == LIMIT
    # In a project that is open to all, without the use of the team and who administers it.
    limit = refusal(served, "otto", entity=TEAM, project="open")
    assert limit == "vision may start no more runs this month: its plan is used up"


METRICS = {
    "resourceMetrics": [
        {
            "scopeMetrics": [
                {
                    "metrics": [
                        {
                            "name": "loss",
                            "gauge": {"dataPoints": [{"timeUnixNano": NOW * 1_000_000, "asDouble": 1}]},
                        }
                    ]
                }
            ]
        }
    ]
}
UPSERT = """mutation($entity: String, $id: String) {
  upsertBucket(input: {name: $id, entityName: $entity, modelName: "voice"}) { inserted }
}"""


@pytest.mark.parametrize("run", ["new", "voice-otto"])
@pytest.mark.parametrize(
    ("method", "path", "how"),
    [
        ("POST", "/v1/metrics", {"json": METRICS, "headers": {"x-runvitals-entity": "NAME"}}),
        ("POST", "/graphql", {"json": {"query": UPSERT, "variables": {"entity": "NAME", "id": "RUN"}}}),
        ("POST", "/files/NAME/voice/RUN/file_stream", {"json": {"files": {}}}),
        ("GET", "/files/NAME/voice/RUN/config.yaml", {}),
        ("POST", "/api/2.0/mlflow/runs/log-batch", {"json": {"run_id": "RUN"}}),
        ("POST", "/api/2.0/mlflow/registered-models/create", {"json": {"name": "NAME/model"}}),
        ("POST", "/api/v1/entities/NAME/projects", {"json": {"name": "voice"}}),
        ("POST", "/api/v1/entities/NAME/projects/voice/sweeps", {"json": {"method": "random"}}),
        ("POST", "/api/v1/runs/RUN/files?entity=NAME", {"json": {"files": []}}),
    ],
)
def test_the_doors_of_other_clients(
    served: ServedOrganisation, over_limit: None, method: str, path: str, how: dict[str, Any], run: str
) -> None:
    responses = []
    for name in (OTHER_TEAM, "spiral"):
        filled = json.loads(json.dumps([path, how]).replace("NAME", name).replace("RUN", run))
        response = served.ask("carol", method, filled[0], **filled[1])
        responses.append((response.status_code, response.text.replace(name, "NAME")))
    assert responses[0] == responses[1]


def told(served: ServedOrganisation, who: str, query: str, **variables: Any) -> str:
    """What a client of W&B is told about an operation that is refused."""
    body = {"query": query, "variables": variables}
    text: str = served.ask(who, "POST", "/graphql", json=body).json()["errors"][0]["message"]
    return text


@pytest.mark.parametrize("operation", ["deleteRun", "stopRun", "updateRunState"])
def test_ids_of_hidden_runs(served: ServedOrganisation, operation: str) -> None:
    state = ', state: "failed"' if operation == "updateRunState" else ""
    query = f"mutation($id: ID!) {{ {operation}(input: {{id: $id{state}}}) {{ __typename }} }}"
    run = served.metadata_store.runs.find("voice-otto", NOW)
    assert run is not None
    hidden, missing = node_id("Run", run.id), node_id("Run", 999_999)
    refused = told(served, "carol", query, id=hidden)
    assert refused.replace(hidden, "ID") == told(served, "carol", query, id=missing).replace(missing, "ID")


def test_projects_of_hidden_teams_for_clients_that_describe_them(served: ServedOrganisation) -> None:
    query = 'mutation($e: String) { upsertModel(input: {name: "voice", entityName: $e}) { inserted } }'
    refused = told(served, "carol", query, e=OTHER_TEAM)
    assert refused.replace(OTHER_TEAM, "NAME") == told(served, "carol", query, e="spiral").replace(
        "spiral", "NAME"
    )


def test_a_client_whose_key_only_reads_finds_no_teams(served: ServedOrganisation) -> None:
    served.keys["sight"], _ = served.accounts.keys.create(
        "sight", CLI, NOW, user_id=served.users["carol"], scope="read"
    )
    for run in ("new", "voice-otto"):
        responses = [told(served, "sight", UPSERT, entity=name, id=run) for name in (OTHER_TEAM, "spiral")]
        assert responses[0].replace(OTHER_TEAM, "NAME") == responses[1].replace("spiral", "NAME")
