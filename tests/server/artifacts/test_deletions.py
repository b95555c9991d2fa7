"""What breaks if an artifact is deleted, and that what is linked is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from runvitals.cli import main
from runvitals.server.audit.storage.audit import CLI, AuditFilter
from tests.patience import PATIENCE_S
from tests.server.access.organisation import NOW, OTHER_TEAM, TEAM, ServedOrganisation, served_organisation
from tests.server.artifacts.graph import link_runs, run_number
from tests.server.database.artifacts.making import T0, logged
from tests.server.database.runs import made
from tests.server.serving import serving

ARTIFACTS = f"/api/v1/entities/{TEAM}/projects/team/artifacts"
DEPENDENTS = f"/api/v1/entities/{TEAM}/projects/team/artifact-dependents"


@pytest.fixture
def vision(tmp_path: Path) -> Iterator[ServedOrganisation]:
    """`data` was used by bob's run, which made `model`, and by a run of another team."""
    with served_organisation(tmp_path) as served:
        served.add_run("run-train", "team", TEAM, "bob")
        served.add_run("run-secret", "voice", OTHER_TEAM, "otto")
        store = served.metadata_store
        versions = link_runs(store, "team", "data > run-train > model")
        secret = run_number(store, "run-secret")
        store.artifacts.lineage.add(versions["data"], secret, "", T0)
        logged(store, store.projects.id("voice"), {"a": b"hidden"}, "hidden-model", run_id=secret)
        served.rights_changed()
        yield served


def link(served: ServedOrganisation, name: str, project: str, portfolio: str) -> tuple[int, int]:
    """Link the version `name` of the project `team`; returns the ids of the version and the portfolio."""
    store = served.metadata_store
    member = store.artifacts.collections.member(store.projects.id("team"), name)
    assert member is not None
    linked = store.artifacts.links.link(
        member.version.id, store.projects.id(project), portfolio, ["prod"], T0
    )
    return member.version.id, linked.collection.id


def asked(served: ServedOrganisation, who: str = "bob", **query: str) -> dict[str, Any]:
    response = served.ask(who, "GET", DEPENDENTS, params=query)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def test_what_breaks(vision: ServedOrganisation) -> None:
    """What the requester may not read is counted, and has no name."""
    answer = asked(vision, name="data", alias="latest")
    assert ([run["run"] for run in answer["used_by"]], answer["used_by_total"]) == (["run-train"], 2)
    assert ([row["name"] for row in answer["made_from"]], answer["made_from_total"]) == (["model"], 2)
    assert (answer["links"], answer["links_total"], answer["deletable"]) == ([], 0, True)
    assert answer["aliases"] == ["latest"]
    assert (answer["may"], asked(vision, "vera", name="data")["may"]) == (
        ["artifact:delete", "artifact:update"],
        [],
    )
    text = vision.ask("bob", "GET", DEPENDENTS, params={"name": "data"}).text
    assert "secret" not in text
    assert "hidden" not in text
    whole = asked(vision, name="data")
    assert {**whole, "aliases": []} == {**answer, "aliases": []}
    assert vision.ask("otto", "GET", DEPENDENTS, params={"name": "data"}).status_code == 404
    assert vision.ask("bob", "GET", DEPENDENTS, params={"name": "none"}).status_code == 404


def test_what_breaks_with_a_run_and_with_a_project(vision: ServedOrganisation) -> None:
    """What a run made stays. Of a project only what others use or have linked counts."""
    store = vision.metadata_store
    vision.add_run("run-judge", "team", TEAM, "bob")
    link_runs(store, "team", "more > run-train > classifier > run-judge > scores")
    response = vision.ask("bob", "GET", "/api/v1/runs/run-train/artifact-dependents")
    answer = response.json()
    assert ([run["run"] for run in answer["used_by"]], answer["used_by_total"]) == (["run-judge"], 1)
    assert ([row["name"] for row in answer["made_from"]], answer["deletable"]) == (["scores"], True)
    assert vision.ask("otto", "GET", "/api/v1/runs/run-train/artifact-dependents").status_code == 404
    link(vision, "data", "team", "own")
    project = asked(vision)
    assert (project["used_by"], project["used_by_total"]) == ([], 1)
    assert (project["made_from_total"], project["links"], project["deletable"]) == (1, [], True)
    link(vision, "data", "organisation", "approved")
    project = asked(vision)
    assert ([row["name"] for row in project["links"]], project["deletable"]) == (["approved"], False)


def test_a_linked_version_is_not_deleted(vision: ServedOrganisation) -> None:
    store = vision.metadata_store
    link(vision, "data", "organisation", "approved")
    hidden = link(vision, "data", "private", "secret-models")
    answer = asked(vision, "carol", name="data", alias="v0")
    assert ([row["name"] for row in answer["links"]], answer["links_total"]) == (["approved"], 2)
    assert answer["deletable"] is False
    for path in ("/data/v0?with_aliases=true", "/data"):
        refused = vision.ask("carol", "DELETE", ARTIFACTS + path)
        assert refused.status_code == 409
        body = refused.json()
        assert body["error"] == (
            "the artifact cannot be deleted: it is linked as vision/organisation/approved:v0 (latest, prod), "
            "in 1 more place: unlink it there first"
        )
        assert ([row["project"] for row in body["links"]], body["links_total"]) == (["organisation"], 2)
        assert "secret" not in refused.text
    # A model that only the other project has linked keeps no deletion of another artifact.
    assert vision.ask("carol", "DELETE", f"{ARTIFACTS}/model").status_code == 204
    store.artifacts.links.unlink(*hidden, T0)
    approved = store.artifacts.collections.named(store.projects.id("organisation"), "approved")
    assert approved is not None
    store.artifacts.links.unlink(hidden[0], approved.id, T0)
    assert vision.ask("carol", "DELETE", f"{ARTIFACTS}/data/v0?with_aliases=true").status_code == 204


def test_a_project_whose_versions_are_linked_elsewhere_is_not_deleted(vision: ServedOrganisation) -> None:
    """By any of its addresses, and by MLflow's; a link within the project goes with it."""
    link(vision, "data", "team", "own")
    ids = link(vision, "data", "organisation", "approved")
    project = f"/api/v1/entities/{TEAM}/projects/team"
    refused = vision.ask("alice", "DELETE", project)
    assert (refused.status_code, refused.json()["links_total"]) == (409, 1)
    text = "cannot be deleted: it is linked as vision/organisation/approved:v0 (latest, prod)"
    assert text in refused.json()["error"]
    plain = vision.ask("alice", "DELETE", "/api/v1/projects/team")
    assert (plain.status_code, plain.json()) == (
        409,
        {"error": "it is linked in 1 place: unlink it there first"},
    )
    mlflow = "/api/2.0/mlflow/experiments"
    found = vision.ask("alice", "GET", f"{mlflow}/get-by-name?experiment_name={TEAM}/team").json()
    sent = {"experiment_id": found["experiment"]["experiment_id"]}
    by_mlflow = vision.ask("alice", "POST", f"{mlflow}/delete", json=sent)
    assert (by_mlflow.status_code, by_mlflow.json()["error_code"]) == (409, "RESOURCE_CONFLICT")
    assert text in by_mlflow.json()["message"]
    vision.metadata_store.artifacts.links.unlink(*ids, T0)
    assert vision.ask("alice", "DELETE", project).status_code == 202


def test_a_version_is_deleted_with_its_aliases_only_if_the_request_says_so(
    vision: ServedOrganisation,
) -> None:
    refused = vision.ask("carol", "DELETE", f"{ARTIFACTS}/model/v0")
    assert (refused.status_code, "has the aliases latest" in refused.text) == (409, True)
    assert vision.ask("carol", "DELETE", f"{ARTIFACTS}/model/v0?with_aliases=true").status_code == 204
    assert vision.ask("carol", "GET", f"{ARTIFACTS}/model/v0").status_code == 404
    assert vision.ask("carol", "DELETE", f"{ARTIFACTS}/data").status_code == 204
    events = vision.accounts.audit.page(AuditFilter(action="artifact.delete"), 10)
    assert [(event.actor_name, event.project, event.before) for event in events] == [
        ("carol", "team", {"artifact": "data"}),
        ("carol", "team", {"artifact": "model:v0"}),
    ]


def test_a_portfolio_is_deleted_and_its_versions_stay(vision: ServedOrganisation) -> None:
    link(vision, "data", "team", "best")
    conflict = vision.ask("carol", "DELETE", f"{ARTIFACTS}/best/v0?with_aliases=true")
    assert (conflict.status_code, "unlinked" in conflict.text) == (409, True)
    assert asked(vision, name="best")["deletable"] is True
    assert vision.ask("carol", "DELETE", f"{ARTIFACTS}/best").status_code == 204
    assert vision.ask("carol", "GET", f"{ARTIFACTS}/data/v0").status_code == 200


@pytest.mark.parametrize("path", ["/data/v0?with_aliases=true", "/data"])
def test_who_may_delete(vision: ServedOrganisation, path: str) -> None:
    statuses = {
        who: vision.ask(who, "DELETE", ARTIFACTS + path).status_code for who in (None, "otto", "vera")
    }
    assert statuses == {None: 401, "otto": 404, "vera": 403}
    reads = vision.accounts.keys.create("r", CLI, NOW, user_id=vision.users["bob"], scope="read")[0]
    only_reads = httpx.delete(
        f"{vision.url}{ARTIFACTS}{path}", headers={"authorization": f"Bearer {reads}"}, timeout=PATIENCE_S
    )
    assert only_reads.status_code == 403
    assert vision.ask("alice", "DELETE", ARTIFACTS + path).status_code == 204


def test_without_accounts(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        made(served.metadata_store, "run-a")
        link_runs(served.metadata_store, "digits", "data > run-a > model")
        base = f"{served.url}/api/v1/projects/digits"
        answer = httpx.get(f"{base}/artifact-dependents?name=data&alias=v0", timeout=PATIENCE_S).json()
        assert ([run["run"] for run in answer["used_by"]], answer["may"]) == (
            ["run-a"],
            ["artifact:delete", "artifact:update"],
        )
        deleted = httpx.delete(f"{base}/artifacts/data/v0?with_aliases=true", timeout=PATIENCE_S)
        assert deleted.status_code == 204, deleted.text
        assert httpx.delete(f"{base}/artifacts/model", timeout=PATIENCE_S).status_code == 204
        assert httpx.get(f"{base}/artifacts", timeout=PATIENCE_S).json()["total"] == 1


def test_the_command_says_what_breaks_and_deletes_with_yes(
    vision: ServedOrganisation,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("RUNVITALS_SERVER", vision.url)
    monkeypatch.setenv("RUNVITALS_TOKEN", vision.keys["carol"])
    monkeypatch.setenv("RUNVITALS_DIR", str(tmp_path / "data"))
    ids = link(vision, "data", "organisation", "approved")
    command = ["artifact", "rm", f"{TEAM}/team/data:v0"]
    assert main([*command, "--yes"]) == 1
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [
        "used by: run-train, 1 more",
        "made from it: model:v0, 1 more",
        "linked as: vision/organisation/approved:v0",
        "aliases: latest",
    ]
    assert "it is linked: unlink it there first" in shown.err
    vision.metadata_store.artifacts.links.unlink(*ids, T0)
    assert main(command) == 0
    assert capsys.readouterr().out.endswith("Nothing was deleted. Add --yes to delete it for good.\n")
    assert vision.ask("carol", "GET", f"{ARTIFACTS}/data/v0").status_code == 200
    assert main([*command, "--yes"]) == 0
    assert vision.ask("carol", "GET", f"{ARTIFACTS}/data/v0").status_code == 404
    assert main(["artifact", "rm", f"{TEAM}/team/model", "--yes"]) == 0
    assert vision.ask("carol", "GET", f"{ARTIFACTS}/model").status_code == 404
    assert main(["artifact", "rm", f"{TEAM}/team/none", "--yes"]) == 1


def test_a_team_whose_versions_another_team_has_is_not_deleted(vision: ServedOrganisation) -> None:
    ids = link(vision, "data", "voice", "approved")
    link(vision, "data", "organisation", "own")  # of the same team: it goes with it
    headers = {"cookie": f"runvitals_session={vision.sign_in('rita')}", "sec-fetch-site": "same-origin"}

    def delete() -> httpx.Response:
        confirmed = {"confirm": TEAM}
        return httpx.request(
            "DELETE", f"{vision.url}/api/v1/teams/{TEAM}", json=confirmed, headers=headers, timeout=PATIENCE_S
        )

    refused = delete()
    assert (refused.status_code, refused.json()["links_total"]) == (409, 1)
    vision.metadata_store.artifacts.links.unlink(*ids, T0)
    assert delete().status_code == 202
