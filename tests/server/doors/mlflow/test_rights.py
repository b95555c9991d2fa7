"""Keys of accounts: whose experiments and runs their clients see and change."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from runvitals.server.audit.storage.audit import CLI
from tests.patience import PATIENCE_S
from tests.server.serving import Served, serving

NOW = 1_800_000_000_000


@pytest.fixture(scope="module")
def organisation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, dict[str, str]]]:
    with serving(tmp_path_factory.mktemp("mlflow"), clock=lambda: NOW) as served:
        accounts, keys = served.metadata_store.accounts, {}
        for name, role in (("rita", "admin"), ("ada", "member"), ("bob", "member")):
            user = accounts.users.create(name, CLI, NOW, org_role=role, verified=True)
            keys[name], _ = accounts.keys.create("a", CLI, NOW, user_id=user.id)
            keys[f"{name}, reading"], _ = accounts.keys.create("r", CLI, NOW, user_id=user.id, scope="read")
        served.app.services.access.rights_changed()
        yield served, keys


def ask(organisation: tuple[Served, dict[str, str]], who: str, path: str, **sent: Any) -> httpx.Response:
    served, keys = organisation
    headers = {"authorization": f"Bearer {keys[who]}"} if who else {}
    url = f"{served.url}/api/2.0/mlflow/{path}"
    if "get" in path:
        return httpx.get(url, params=sent, headers=headers, timeout=PATIENCE_S)
    return httpx.post(url, json=sent, headers=headers, timeout=PATIENCE_S)


def test_processes_that_create_one_experiment_at_once(organisation: tuple[Served, dict[str, str]]) -> None:
    for name in ("ranks", "ranks of a run/1"):
        with ThreadPoolExecutor(6) as threads:
            sent = [
                threads.submit(ask, organisation, "ada", "experiments/create", name=name) for _ in range(6)
            ]
        answers = [each.result() for each in sent]
        assert sorted(answer.status_code for answer in answers) == [200, *[400] * 5]
        taken = {answer.json().get("error_code") for answer in answers}
        assert taken == {None, "RESOURCE_ALREADY_EXISTS"}


def test_own_experiments_and_those_of_others(organisation: tuple[Served, dict[str, str]]) -> None:
    number = ask(organisation, "ada", "experiments/create", name="secret").json()["experiment_id"]
    run = ask(organisation, "ada", "runs/create", experiment_id=number).json()["run"]["info"]["run_id"]
    point = {"key": "m", "value": 1.0, "timestamp": NOW, "step": 0}
    assert ask(organisation, "ada", "runs/log-metric", run_id=run, **point).status_code == 200
    assert ask(organisation, "ada, reading", "runs/get", run_id=run).status_code == 200
    assert ask(organisation, "ada, reading", "runs/log-metric", run_id=run, **point).status_code == 403
    assert ask(organisation, "ada, reading", "experiments/create", name="more").status_code == 403
    for path, sent in (
        ("runs/get", {"run_id": run}),
        ("runs/log-metric", {"run_id": run, **point}),
        ("runs/delete", {"run_id": run}),
        ("runs/update", {"run_id": run, "status": "FAILED"}),
        ("runs/set-tag", {"run_id": run, "key": "a", "value": "b"}),
        ("experiments/get", {"experiment_id": number}),
        ("experiments/get-by-name", {"experiment_name": "ada/secret"}),
        ("experiments/delete", {"experiment_id": number}),
        ("experiments/set-experiment-tag", {"experiment_id": number, "key": "a", "value": "b"}),
        ("runs/create", {"experiment_id": number}),
        ("metrics/get-history", {"run_id": run, "metric_key": "m"}),
    ):
        response = ask(organisation, "bob", path, **sent)
        assert (response.status_code, response.json()["error_code"]) == (404, "RESOURCE_DOES_NOT_EXIST"), path
        assert path == "experiments/get-by-name" or "ada/secret" not in response.text, path
        assert ask(organisation, "", path, **sent).status_code == 401, path
    assert ask(organisation, "bob", "runs/search", experiment_ids=[number]).json()["runs"] == []
    [default] = ask(organisation, "bob", "experiments/search").json()["experiments"]
    assert (default["experiment_id"], default["name"]) == ("0", "Default")
    assert ask(organisation, "ada", "runs/get", run_id=run).json()["run"]["info"]["status"] == "RUNNING"


def test_writing_to_a_deleted_run(organisation: tuple[Served, dict[str, str]]) -> None:
    run = ask(organisation, "ada", "runs/create", experiment_id="0").json()["run"]["info"]["run_id"]
    point = {"key": "m", "value": 1.0, "timestamp": NOW, "step": 0}
    assert ask(organisation, "ada", "runs/log-metric", run_id=run, **point).status_code == 200
    assert ask(organisation, "ada", "runs/delete", run_id=run).status_code == 200
    for who, status, text in (
        ("ada", 400, "must be in the 'active' state"),
        ("bob", 404, "not found"),
    ):
        refused = ask(organisation, who, "runs/log-metric", run_id=run, **point)
        assert refused.status_code == status
        assert text in refused.json()["message"]
    number = ask(organisation, "ada", "experiments/create", name="gone").json()["experiment_id"]
    assert ask(organisation, "ada", "experiments/delete", experiment_id=number).status_code == 200
    refused = ask(
        organisation, "ada", "experiments/set-experiment-tag", experiment_id=number, key="a", value="b"
    )
    assert (refused.status_code, "must be in the 'active' state" in refused.text) == (400, True)


def test_the_default_experiment_before_its_first_run(organisation: tuple[Served, dict[str, str]]) -> None:
    experiment = ask(organisation, "rita", "experiments/get", experiment_id="0").json()["experiment"]
    assert (experiment["name"], experiment["lifecycle_stage"]) == ("Default", "active")
    named = ask(organisation, "rita", "experiments/get-by-name", experiment_name="Default").json()
    assert named["experiment"] == experiment
    assert ask(organisation, "rita", "experiments/create", name="Default").status_code == 400
    assert ask(organisation, "rita", "runs/search", experiment_ids=["0"]).json()["runs"] == []
    tag = {"experiment_id": "0", "key": "a", "value": "b"}
    assert ask(organisation, "rita", "experiments/set-experiment-tag", **tag).status_code == 404
    info = ask(organisation, "rita", "runs/create", experiment_id="0").json()["run"]["info"]
    assert info["experiment_id"] == "0"


def test_the_default_experiment_is_everyones_own(organisation: tuple[Served, dict[str, str]]) -> None:
    runs = {}
    for who in ("ada", "bob"):
        info = ask(organisation, who, "runs/create", experiment_id="0").json()["run"]["info"]
        assert info["experiment_id"] == "0"
        runs[who] = info["run_id"]
    for who in runs:
        shown = ask(organisation, who, "runs/search", experiment_ids=["0"]).json()["runs"]
        assert {run["info"]["run_id"] for run in shown} & set(runs.values()) == {runs[who]}
    assert ask(organisation, "bob", "runs/get", run_id=runs["ada"]).status_code == 404


def test_files_and_models_of_others(organisation: tuple[Served, dict[str, str]]) -> None:
    served, keys = organisation
    number = ask(organisation, "ada", "experiments/create", name="files").json()["experiment_id"]
    run = ask(organisation, "ada", "runs/create", experiment_id=number).json()["run"]["info"]["run_id"]
    url = f"{served.url}/api/2.0/mlflow-artifacts/artifacts/{number}/{run}/artifacts/a.txt"
    for who, put, got in (("ada", 200, 200), ("ada, reading", 403, 200), ("bob", 404, 404)):
        headers = {"authorization": f"Bearer {keys[who]}"}
        sent = httpx.put(url, content=b"x", headers=headers, timeout=PATIENCE_S)
        assert (sent.status_code, sent.json().get("error_code") is None) == (put, put == 200), who
        assert httpx.get(url, headers=headers, timeout=PATIENCE_S).status_code == got, who
    model = ask(organisation, "ada", "logged-models", experiment_id=number).json()["model"]["info"]
    for who, status in (("ada", 200), ("bob", 404)):
        path = f"logged-models/{model['model_id']}/params"
        assert ask(organisation, who, path, params=[{"key": "a", "value": "1"}]).status_code == status
    own = ask(organisation, "bob", "runs/create", experiment_id="0").json()["run"]["info"]["run_id"]
    for who, of_run, status in (("ada", run, 200), ("bob", own, 404)):
        metric = {"key": "acc", "value": 1, "timestamp": 1, "model_id": model["model_id"]}
        assert ask(organisation, who, "runs/log-metric", run_id=of_run, **metric).status_code == status
        assert ask(organisation, who, "runs/log-batch", run_id=of_run, metrics=[metric]).status_code == status
    assert ask(organisation, "ada", "registered-models/create", name="net").status_code == 200
    assert ask(organisation, "ada", "registered-models/get", name="net").status_code == 200
    assert ask(organisation, "bob", "registered-models/get", name="net").status_code == 404
    assert ask(organisation, "ada, reading", "registered-models/create", name="other").status_code == 403


def test_the_registry_of_a_team_for_its_viewers(organisation: tuple[Served, dict[str, str]]) -> None:
    served, keys = organisation
    accounts = served.metadata_store.accounts
    for team in ("vision", "speech"):
        accounts.teams.create(team, CLI, NOW)
        number = accounts.teams.by_name(team).id
        trainer = accounts.service_accounts.create("trainer", number, CLI, NOW)
        keys[team], _ = accounts.keys.create("t", CLI, NOW, service_account_id=trainer.id)
    vera = accounts.users.create("vera", CLI, NOW, verified=True)
    keys["vera"], _ = accounts.keys.create("v", CLI, NOW, user_id=vera.id)
    accounts.members.add("vision", "vera", "viewer", CLI, NOW)
    served.app.services.access.rights_changed()
    assert ask(organisation, "vision", "registered-models/create", name="detector").status_code == 200
    version = {"name": "detector", "source": "s3://models/detector"}
    assert ask(organisation, "vision", "model-versions/create", **version).status_code == 200
    assert ask(organisation, "speech", "registered-models/create", name="reader").status_code == 200

    registered_model = ask(organisation, "vera", "registered-models/get", name="detector").json()[
        "registered_model"
    ]
    assert registered_model["latest_versions"][0]["source"] == "s3://models/detector"
    uri = ask(organisation, "vera", "model-versions/get-download-uri", name="detector", version="1")
    assert uri.json()["artifact_uri"] == "s3://models/detector"
    assert ask(organisation, "vera", "registered-models/get", name="reader").status_code == 404
    assert ask(organisation, "bob", "registered-models/get", name="detector").status_code == 404
    headers = {"authorization": f"Bearer {keys['vera']}"}
    search = f"{served.url}/api/2.0/mlflow/registered-models/search"
    listed = httpx.get(search, headers=headers, timeout=PATIENCE_S).json()["registered_models"]
    assert [model["name"] for model in listed] == ["detector"]
    tag = {"name": "detector", "key": "a", "value": "b"}
    assert ask(organisation, "vera", "registered-models/set-tag", **tag).status_code == 403
    assert ask(organisation, "bob", "registered-models/set-tag", **tag).status_code == 404

    accounts.members.add("speech", "vera", "viewer", CLI, NOW)
    served.app.services.access.rights_changed()
    assert ask(organisation, "vera", "registered-models/get", name="reader").status_code == 200
    assert ask(organisation, "speech", "registered-models/create", name="detector").status_code == 200
    several = ask(organisation, "vera", "registered-models/get", name="detector")
    assert (several.status_code, "several of your teams" in several.text) == (400, True)
    assert ask(organisation, "vera", "registered-models/create", name="detector").status_code == 200
    mine = ask(organisation, "vera", "registered-models/get", name="detector").json()["registered_model"]
    assert "latest_versions" not in mine or mine["latest_versions"] == []  # of the own space
