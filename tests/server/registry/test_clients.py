"""One registry for all: what MLflow's client registers, wandb's and our API find, and the other ways round.

Unmodified clients: the newest, and the oldest that are supported.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.server.registry.conftest import Registries

_CLIENTS = Path(__file__).parent / "clients"
_BUILT = Path(__file__).parents[3] / "build/clients"
MLFLOW = {"new": Path(sys.executable), "old": _BUILT / "mlflow-skinny--2.8.1/bin/python"}
_SHARED = "/api/v1/teams/organisation/registries/shared"
WANDB = {"new": Path(sys.executable), "old": _BUILT / "wandb--0.16.6/bin/python"}


class Clients:
    """Runs the steps of a pair of clients, as carol or another user whose runs go to the team `vision`."""

    def __init__(self, registries: Registries, age: str, folder: Path, who: str = "carol") -> None:
        self.registries = registries
        self._who = who
        self._age = age
        self._folder = folder
        self._served = registries.served

    def mlflow(self, step: str, name: str) -> Any:
        key = self._served.keys[self._who]
        own = {"MLFLOW_TRACKING_URI": self._served.url, "MLFLOW_TRACKING_TOKEN": key}
        return self._run(MLFLOW[self._age], "mlflow_client.py", step, name, own)

    def wandb(self, step: str, name: str) -> Any:
        folders = {f"WANDB_{kind}_DIR": str(self._folder / kind) for kind in ("CACHE", "DATA", "CONFIG")}
        own = {
            "WANDB_BASE_URL": self._served.url,
            "WANDB_API_KEY": self._served.keys[self._who],
            "WANDB_DIR": str(self._folder),
            "WANDB_SILENT": "true",
            "WANDB_ERROR_REPORTING": "false",
            **folders,
        }
        return self._run(WANDB[self._age], "wandb_client.py", step, name, own)

    def _run(self, python: Path, program: str, step: str, name: str, own: dict[str, str]) -> Any:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("WANDB_", "MLFLOW_"))}
        done = subprocess.run(
            [str(python), str(_CLIENTS / program), step, name],
            env={**kept, **own},
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=3 * PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-1000:]
        line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT "))
        return json.loads(line.removeprefix("RESULT "))


@pytest.fixture(params=["new", "old"])
def clients(registries: Registries, request: pytest.FixtureRequest, tmp_path: Path) -> Clients:
    age: str = request.param
    if not (MLFLOW[age].exists() and WANDB[age].exists()):
        pytest.skip("scripts/old-client installs the old clients")
    profile = {"default_entity": "vision"}
    response = registries.served.ask("carol", "PATCH", "/api/v1/account/profile", json=profile)
    assert response.status_code == 200, response.text
    new = {"name": "shared"}
    created = registries.served.ask("rita", "POST", "/api/v1/teams/organisation/registries", json=new)
    assert created.status_code in (201, 409), created.text
    role = {"role": "member"}
    assert registries.served.ask("rita", "PUT", f"{_SHARED}/members/carol", json=role).status_code == 204
    return Clients(registries, age, tmp_path)


def test_all_directions(clients: Clients) -> None:
    registries = clients.registries
    name = f"faces-{clients._age}"
    path = f"/model/collections/{name}"
    registered = clients.mlflow("register", name)
    assert registered["version"] == "1"

    # MLflow → our API and wandb
    row = registries.ok("vera", "GET", path)
    assert (row["type"], row["newest"], row["aliases"]) == ("model", 1, {"champion": 1, "latest": 1})
    version = registries.ok("vera", "GET", f"{path}/versions/champion")
    assert (version["run"], version["stage"], version["properties"]) == (
        registered["run"],
        "Staging",
        {"acc": "0.9"},
    )
    read = registries.ask("vera", "GET", f"{path}/versions/1/files/data/weights.bin")
    assert read.text == "weights of mlflow"
    files = {"MLmodel": "flavors: {}", "data/weights.bin": "weights of mlflow"}
    assert clients.wandb("read", f"{name}:champion") == {"version": "v1", "type": "model", "files": files}

    # wandb → our API and MLflow
    assert clients.wandb("link", name) == {"version": "v2", "aliases": ["as before", "better", "latest"]}
    shared = registries.served.ask("otto", "GET", f"{_SHARED}/collections/{name}/versions/for all").json()
    # Who reads the registry need not read the project of the run.
    assert (shared["author"], shared["run"]) == ("carol", None)
    otto = Clients(registries, clients._age, clients._folder, "otto")
    got = otto.wandb("read", f"organisation/wandb-registry-shared/{name}:for all")["files"]
    assert got == {"weights.bin": f"weights of wandb {name}"}
    version = registries.ok("vera", "GET", f"{path}/versions/better")
    assert (version["version"], version["run"]) == (2, f"wandb-{name}")
    seen = clients.mlflow("read", name)
    assert (seen["versions"], seen["tags"]) == ([1, 2], {"task": "vision"})
    aliases = {alias: int(number) for alias, number in seen["aliases"].items()}
    assert aliases == {"as before": 2, "better": 2, "champion": 1}
    assert seen["stages"] == {"1": "Staging", "2": "None"}
    assert seen["files"] == {"weights.bin": f"weights of wandb {name}"}
    assert (seen["found"][0], seen["run"]) == (name, f"wandb-{name}")

    # our API → both
    link = {"artifact": "team/weights", "version": "v1", "aliases": ["ours"]}
    assert registries.ok("bob", "POST", f"{path}/versions", json=link)["version"] == 3
    assert clients.mlflow("read", name)["files"]["model.bin"] == "model 1"
    assert clients.wandb("read", f"{name}:ours")["files"]["model.bin"] == "model 1"

    if clients._age == "new":
        copies = clients.mlflow("copy", name)
        assert copies == {"copies": ["1", "2"], "source": f"models:/{name}/1"}
        assert clients.wandb("read", f"{name} copy:v2")["files"] == files
        browsed = clients.wandb("browse", name)
        assert browsed["collections"] == [name]
        assert browsed["sorted"] == [[3, 1, 2], [2, 1, 3], [2, 1, 3], [3, 2, 1]]
        assert browsed["filtered"] == [3, 0, 1, 1, 1, 3]
        assert browsed["versions"] == [f"{name}:v1", f"{name}:v2", f"{name}:v3"]

    # a protected alias is protected from both
    registries.ok("alice", "PUT", "/model/admins/bob")
    registries.ok("bob", "PUT", "/model/protected-aliases/production")
    registries.ok("bob", "PUT", f"{path}/aliases/production", json={"version": 1})
    errors = [*clients.mlflow("refused", name)["errors"], *clients.wandb("refused", name)["errors"]]
    assert len(errors) == 3
    assert all("bob may change" in error for error in errors), errors
    assert registries.ok("vera", "GET", f"{path}")["aliases"]["production"] == 1


def test_wandb_automates_a_registry_of_the_organisation(registries: Registries, tmp_path: Path) -> None:
    """As bob, who administers the registry and not the organisation, whose webhook he uses by its name."""
    ask, ours = registries.served.ask, "/api/v1/teams/organisation"
    hook = {"name": "ci", "url": "https://ci.example/hook"}
    for who, method, path, body in (
        ("rita", "POST", "registries", {"name": "auto"}),
        ("rita", "PUT", "registries/auto/admins/bob", None),
        ("bob", "POST", "registries/auto/collections/net/versions", {"artifact": "vision/team/weights"}),
        ("rita", "POST", "webhooks", hook),
    ):
        answer = ask(who, method, f"{ours}/{path}", json=body)
        assert answer.status_code < 300, answer.text
    done = Clients(registries, "new", tmp_path, "bob").wandb("automate", "auto")
    both = [["linked", "wandb-registry-auto"], ["gold", "wandb-registry-auto"]]
    assert (done["listed"], done["mine"]) == (both, ["gold", "linked"])
    assert (done["changed"], done["left"], done["url"]) == (False, ["gold"], "")
    (made,) = ask("bob", "GET", f"{ours}/registries/auto/automations").json()["automations"]
    event = {"kind": "artifact.alias", "alias": "^gold$", "collection": "^net$"}
    assert (made["event"], made["filter"]["projects"], made["registry"]) == (event, [], "auto")
    assert ask("carol", "GET", f"{ours}/automations").status_code == 404


def test_wandb_manages_registries_of_the_organisation(registries: Registries, tmp_path: Path) -> None:
    clients = Clients(registries, "new", tmp_path, "rita")
    users = registries.served.users
    ids = [base64.b64encode(f"User:{users[name]}".encode()).decode() for name in ("carol", "bob")]
    done = clients.wandb("manage", " ".join(ids))
    assert done["roles"] == {"carol": "member", "bob": "admin"}
    assert done["teams"] == [["vision", "viewer"], ["vision", "admin"]]
    assert done["seen"] == ["described", ["dataset", "model"], "organization", "organisation", True, True]
    assert done["left"] == ["carol"]
    assert "already exists in organization 'organisation'" in done["again"]
    assert (done["names"].count("renamed"), done["names"].count("fresh")) == (1, 0)
