"""Automations and integrations that wandb's client creates and lists are those of the team."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from runvitals.server.audit.storage.audit import CLI
from runvitals.server.doors.wandb.automations.events import our_event, their_event
from runvitals.server.doors.wandb.executor import InvalidArgument
from tests.patience import PATIENCE_S
from tests.server.doors.wandb.test_client import environment
from tests.server.doors.wandb.test_rights import NOW, Users
from tests.server.serving import serving

SCRIPT = Path(__file__).with_name("automation_client.py")
URL = "https://ci.example/hook"


@dataclass
class Vision:
    """A server with the team vision. `printed`: by the client of its administrator."""

    users: Users
    team: int
    printed: dict[str, Any]

    def definitions(self) -> dict[str, Any]:
        rows = self.users.served.metadata_store.alerts.automations.of_team(self.team)
        return {row.name: row.definition for row in rows}


@pytest.fixture(scope="module")
def vision(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vision]:
    folder = tmp_path_factory.mktemp("automations")
    with serving(folder / "server") as served:
        accounts, destinations = served.metadata_store.accounts, served.metadata_store.alerts.destinations
        roles = {
            "rita": "admin",
            "ada": "member",
            "bo": "member",
        }  # with an administrator, there are accounts
        users = {name: accounts.users.create(name, CLI, NOW, org_role=role) for name, role in roles.items()}
        keys = {
            name: accounts.keys.create("a", CLI, NOW, user_id=user.id, scope="full")[0]
            for name, user in users.items()
        }
        team = accounts.teams.create("vision", CLI, NOW, administrator=users["ada"].id)
        accounts.members.add("vision", "bo", "member", CLI, NOW)
        accounts.owned_projects.create(team.id, "digits", CLI, NOW)
        hook = {"url": URL, "enabled": True, "payload": None, "access_secret": None, "signing_secret": None}
        destinations.create("webhook", team.id, "ci", hook, CLI, NOW)
        destinations.create("slack", team.id, "#runs", {"sealed": b"-", "shown": "hooks.slack.com"}, CLI, NOW)
        served.app.services.access.rights_changed()
        done = subprocess.run(
            [sys.executable, SCRIPT, "vision", "digits"],
            env={**environment(served, folder), "WANDB_API_KEY": keys["ada"]},
            cwd=folder,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        yield Vision(Users(served, keys), team.id, json.loads(done.stdout))


def test_what_a_client_creates_is_an_automation_of_ours(vision: Vision) -> None:
    made = vision.definitions()
    assert sorted(made) == ["alias", "failed", "jump", "loss"]
    assert made["loss"]["event"] == {
        "kind": "metric.threshold", "metric": "loss", "value": 1.5,
        "comparison": ">", "statistic": "mean", "window": 5,
    }  # fmt: skip
    assert made["loss"]["actions"] == [{"kind": "webhook", "webhook": 1, "payload": '{"text":"${run_name}"}'}]
    assert made["failed"]["event"]["states"] == ["failed", "crashed", "lost"]
    assert made["failed"]["filter"] == {
        "projects": ["digits"],
        "run_name": r"resnet\-",
        "author": "",
        "tag": "",
    }
    assert made["failed"]["actions"] == [{"kind": "slack", "destination": 2}]
    assert made["alias"]["event"] == {"kind": "artifact.alias", "alias": "^prod$", "collection": ""}


def test_the_client_reads_what_it_wrote(vision: Vision) -> None:
    printed = vision.printed
    assert printed["integrations"] == [["ci", URL], "#runs"]
    assert printed["listed"] == printed["created"]
    assert printed["of the viewer"] == ["alias", "failed", "jump", "loss", "odd"]
    assert printed["payload"] == {"text": "${run_name}"}
    assert printed["changed"][:5] == ["loss", False, "kept", "Project", "digits"]
    assert printed["changed"][5] == printed["created"][0][5]
    assert printed["left"] == ["alias", "failed", "jump", "loss"]


def test_what_does_not_map_is_refused_with_what_to_use(vision: Vision) -> None:
    printed = vision.printed
    assert "Automation 'loss' exists" in printed["twice"]
    assert "the action NO_OP is not supported" in printed["nothing"]
    assert "leave out title and message" in printed["title"]
    assert "runvitals automations apply" in printed["either"]
    assert "no run queues" in printed["queue"]


def test_members_see_automations_without_secrets_and_change_none(vision: Vision) -> None:
    query = """{ entity(name: "vision") { triggers { edges { node { id name triggeredAction {
        ... on GenericWebhookTriggeredAction { requestPayload integration {
        ... on GenericWebhookIntegration { urlEndpoint } } } } } } } } }"""
    edges = vision.users.graphql("bo", query)["data"]["entity"]["triggers"]["edges"]
    actions = {edge["node"]["name"]: edge["node"]["triggeredAction"] for edge in edges}
    assert actions["loss"] == {"requestPayload": None, "integration": {"urlEndpoint": ""}}
    delete = """mutation M($id: ID!) { deleteTrigger(input: {triggerID: $id}) { success } }"""
    refused = vision.users.graphql("bo", delete, id=edges[0]["node"]["id"])
    assert refused["errors"][0]["extensions"]["code"] == 403
    integrations = '{ entity(name: "vision") { integrations { edges { cursor } } } }'
    assert vision.users.graphql("bo", integrations)["errors"][0]["extensions"]["code"] == 403


@pytest.mark.parametrize(
    ("kind", "about", "text"),
    [
        ("UNLINK_ARTIFACT", {}, "not supported; expected one of CREATE_ARTIFACT"),
        ("CREATE_ARTIFACT", {"$or": [{"$and": [{"tag": "a"}]}]}, "a filter is not supported"),
        ("ADD_ARTIFACT_ALIAS", {"$not": {"alias": "a"}}, r"\$not is not supported"),
        ("RUN_STATE", {"run_state_filter": {"states": ["KILLED"]}}, "some of RUNNING, FINISHED, FAILED"),
        ("RUN_METRIC", {"run_metric_filter": {"threshold_filter": {"name": "a"}}}, "missing 'threshold'"),
        ("RUN_METRIC", {"run_filter": "[", "run_metric_filter": {"f": {}}}, "expected a JSON object"),
        ("RUN_STATE", {"run_filter": {"config.lr": 1}}, "cannot be filtered by config.lr"),
    ],
)
def test_other_events_are_errors(kind: str, about: Any, text: str) -> None:
    with pytest.raises(InvalidArgument, match=text):
        our_event(kind, json.dumps(about), "")


def test_our_own_events_are_left_out() -> None:
    assert their_event({"event": {"kind": "usage.threshold", "percent": 85}, "filter": {}}) is None
    assert their_event({"event": {"kind": "run.state", "states": ["stopped"]}, "filter": {}}) is None
