"""Reports that an unmodified `wandb_workspaces` writes and reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from runvitals.model.filter_text import parse
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.doors.wandb.executor import InvalidArgument
from runvitals.server.doors.wandb.reports import run_filters
from tests.patience import PATIENCE_S
from tests.server.accounts_server import T0, AccountsServer, accounts_server
from tests.server.projects.routes.conftest import add_run

VIEW = "query Q($id: ID!) { view(id: $id) { id displayName spec } }"
UPSERT = """mutation U($id: ID, $project: String, $spec: String!, $type: String) {
  upsertView(input: {id: $id, entityName: "vision", projectName: $project, spec: $spec, type: $type}) {
    view { id } inserted } }"""
DELETE = "mutation D($id: ID!) { deleteView(input: {id: $id, deleteDrafts: true}) { success } }"


class Lab:
    """The team vision of ada, with a viewer eve and the project digits; mallory is in no team."""

    def __init__(self, server: AccountsServer) -> None:
        self.server, accounts = server, server.accounts
        users = {name: server.user(name) for name in ("ada", "bob", "eve", "mallory")}
        accounts.teams.create("vision", CLI, T0, administrator=users["ada"].id)
        accounts.members.add("vision", "bob", "member", CLI, T0)
        accounts.members.add("vision", "eve", "viewer", CLI, T0)
        self.keys = {
            name: accounts.keys.create("k", CLI, T0, user_id=user.id, scope="full")[0]
            for name, user in users.items()
        }
        server.user("olga", org_role="admin")
        add_run(server, "run-bob", "digits", "bob")
        server.app.services.access.rights_changed()

    def graphql(self, name: str, query: str, **variables: Any) -> Any:
        """The response to an operation of a user."""
        body, auth = {"query": query, "variables": variables}, ("api", self.keys[name])
        response = httpx.post(f"{self.server.url}/graphql", json=body, auth=auth, timeout=PATIENCE_S)
        assert response.status_code < 500, response.text
        return response.json()

    def create(self, name: str = "bob", kind: str = "runs", **spec: Any) -> str:
        """The id of a new report."""
        text = json.dumps({"blocks": [{"type": "paragraph", "children": [{"text": "words"}]}], **spec})
        created = self.graphql(name, UPSERT, project="digits", spec=text, type=kind)
        view_id: str = created["data"]["upsertView"]["view"]["id"]
        return view_id


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with accounts_server(tmp_path_factory.mktemp("wandb-reports")) as server:
        yield Lab(server)


@pytest.fixture(scope="module")
def read(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the client wrote and read."""
    folder = tmp_path_factory.mktemp("client")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WANDB_")}
    environment |= {"WANDB_BASE_URL": lab.server.url, "WANDB_API_KEY": lab.keys["bob"]}
    environment["HOME"] = str(folder)
    result = folder / "result.json"
    client = Path(__file__).with_name("report_client.py")
    command = [sys.executable, str(client), "vision/digits", str(result)]
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr[-3000:]
    output: dict[str, Any] = json.loads(result.read_text())
    return output


def test_a_report_is_saved_loaded_by_its_address_and_changed(read: dict[str, Any]) -> None:
    assert read["same id"]
    for what in ("texts", "panels", "run sets"):
        sent, loaded = read[what]
        assert sent == loaded
    assert read["again"] == "A better result"
    assert read["listed"] == [["Which rate is best", True, "bob"]]
    assert read["by name"]


def test_two_clients_overwrite_nothing_silently(read: dict[str, Any]) -> None:
    assert "others changed the same blocks" in read["conflict"]
    assert read["merged"] == ["Mine", "Yours"]


def test_a_link_is_made_and_ended(lab: Lab, read: dict[str, Any]) -> None:
    assert read["no link"] is None
    assert "/vision/digits/reports/Which-rate-is-best--Vmlldzox?accessToken=" in read["link"]
    assert "accessToken=link-" in read["known link"]  # the secret is shown once
    assert read["disabled"] == [True, None]
    secret = read["link"].partition("=")[2]
    lab.server.ask(None, "GET", "shared", 401, headers={"x-runvitals-link": secret})
    report = lab.create()
    query = "query Q($id: ID!) { view(id: $id) { accessTokens { token projects { name } } } }"
    new = "createAccessToken(input: {viewId: $id, projects: []}) { accessToken { token } }"
    made = f"mutation C($id: ID!) {{ {new} }}"
    assert "may not" in lab.graphql("eve", made, id=report)["errors"][0]["message"]
    token = lab.graphql("bob", made, id=report)["data"]["createAccessToken"]["accessToken"]["token"]
    assert lab.server.ask(None, "GET", "shared", headers={"x-runvitals-link": token})
    assert lab.graphql("eve", query, id=report)["data"]["view"]["accessTokens"] == []
    revoke = "mutation R($t: String!) { revokeAccessToken(input: {token: $t}) { success } }"
    assert "errors" in lab.graphql("eve", revoke, t=token)
    assert lab.graphql("bob", revoke, t=token)["data"]["revokeAccessToken"]["success"]
    lab.server.ask(None, "GET", "shared", 401, headers={"x-runvitals-link": token})


def test_filters_with_or_between_fields_are_ours_and_come_back(lab: Lab, read: dict[str, Any]) -> None:
    url, sent, loaded = read["or"]
    assert loaded.replace('"', "'") == sent
    report = lab.server.ask("bob", "GET", f"reports/{url.rpartition('--')[2]}?draft=1")
    [run_set] = report["blocks"][0]["run_sets"]
    assert run_set["filter"] == "config.lr>=1 or summary.loss<=2 config.lr>=1 or state:finished"


@pytest.mark.parametrize(
    "text",
    [
        "state:failed,crashed tag:a or config.lr=0.5 -config.m:x,y",
        'config."my key"="a, b" or user:ada',
        "duration>2h started>=2026-11-01 -tag:debug",
        "gpu.util<20 tag:x or name:res* word",
    ],
)
def test_a_filter_of_ours_is_read_and_written_by_clients(text: str) -> None:
    assert parse(run_filters.filter_text(*run_filters.run_filter(text))) == parse(text)


def test_what_our_filters_cannot_say_is_refused() -> None:
    leaf = {"key": {"section": "config", "name": "a"}, "op": "=", "value": 1}
    both = [{"op": "AND", "filters": [{**leaf, "value": 2 * n + m} for m in (0, 1)]} for n in range(8)]
    with pytest.raises(InvalidArgument, match="too many combinations of AND and OR"):
        run_filters.filter_text({"op": "OR", "filters": both})


def test_a_clone_is_another_report_and_can_be_deleted(read: dict[str, Any]) -> None:
    assert (read["clone"], read["deleted"], read["left"]) == (True, True, 1)


def test_the_page_shows_what_the_client_wrote(lab: Lab, read: dict[str, Any]) -> None:
    report = lab.server.ask("eve", "GET", f"reports/{read['url'].rpartition('--')[2]}")
    texts = [block.get("text") for block in report["blocks"]]
    assert texts[:6] == [
        "# Mine",
        "A rate of `0.1` is best, see [this](<https://x.org/a_(b)>)",
        "- one\n- two",
        "- [x] done",
        "```python\nprint('*')\n```",
        "$$\na^2\n$$",
    ]
    [grid] = [block for block in report["blocks"] if block["kind"] == "panels"]
    assert grid["run_sets"][0]["filter"] == "base config.lr>=0.1 state:finished"
    assert [panel["kind"] for panel in grid["panels"]] == ["line", "bar", "scatter", "config_diff", "text"]
    assert grid["panels"][0]["zoom"] == {"min": 0.0, "max": 100.0}


def test_who_may_do_what(lab: Lab) -> None:
    report = lab.create()
    assert lab.graphql("eve", VIEW, id=report)["data"]["view"]["displayName"] == "Untitled report"
    assert lab.graphql("mallory", VIEW, id=report)["data"]["view"] is None
    for name, text in (("eve", "you may not do this"), ("mallory", "there is no")):
        for query, variables in ((UPSERT, {"spec": '{"blocks": []}'}), (DELETE, {})):
            assert text in lab.graphql(name, query, id=report, **variables)["errors"][0]["message"]
        created = lab.graphql(name, UPSERT, project="digits", spec='{"blocks": []}')
        assert text in created["errors"][0]["message"]
    draft = lab.create(kind="runs/draft")
    assert lab.graphql("ada", VIEW, id=draft)["data"]["view"] is None
    assert lab.graphql("bob", VIEW, id=draft)["data"]["view"]["id"] == draft


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("", "invalid spec"),
        ("[]", "expected an object"),
        ('{"blocks": 7}', "list of blocks"),
        ('{"blocks": ["x"]}', "block 1 is not an object"),
        ('{"blocks": [{"type": "panel-grid"}]}', "metadata of a panel grid"),
        ('{"blocks": [{"type": "panel-grid", "metadata": {"runSets": ["x"]}}]}', "invalid run set"),
        ('{"blocks": [{"type": "heading", "collapsedChildren": ["x"]}]}', "below a heading"),
        ("[" * 5000, "invalid spec"),
        (
            json.dumps({"blocks": [{"type": "markdown-block", "content": "x" * 3_000_000}]}),
            "larger than 2 MB",
        ),
        (json.dumps({"blocks": [{"type": "heading", "children": [{"text": "x"}]}] * 2001}), "2000"),
    ],
)
def test_specs_that_are_wrong_are_refused_with_what_and_where(lab: Lab, spec: str, problem: str) -> None:
    refused = lab.graphql("bob", UPSERT, project="digits", spec=spec)
    assert problem in refused["errors"][0]["message"]


def test_unknown_blocks_come_back_as_they_were(lab: Lab) -> None:
    blocks = [
        {"type": "weave-panel", "config": {"panel": [1, {"deep": None}]}, "children": [{"text": ""}]},
        {"type": "something-new", "of": "2030"},
        {"type": "table-of-contents", "children": [{"text": ""}]},
    ]
    report = lab.create(blocks=blocks, width="fluid")
    spec = json.loads(lab.graphql("bob", VIEW, id=report)["data"]["view"]["spec"])
    assert (spec["blocks"], spec["width"]) == (blocks, "fluid")
