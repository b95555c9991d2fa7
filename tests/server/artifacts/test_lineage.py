"""What runs and versions were made from: over HTTP, with teams, and with more nodes than are shown."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from runvitals.server.artifacts.lineage_walk import MAX_DEPTH, NodeKey, walk
from runvitals.server.artifacts.storage.run_lineage import Lineage
from runvitals.server.registry.storage.logged_model_metrics import ModelMetric
from runvitals.server.registry.storage.logged_models import LoggedModel
from tests.patience import PATIENCE_S
from tests.server.access.organisation import NOW, OTHER_TEAM, TEAM, ServedOrganisation, served_organisation
from tests.server.artifacts.graph import link_runs, run_number
from tests.server.database.artifacts.making import T0, logged
from tests.server.database.runs import made
from tests.server.serving import serving

CHAIN = "raw > run-clean > clean > run-train > model > run-judge > scores"


@pytest.fixture(scope="module")
def vision(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedOrganisation]:
    """The project `team` of vision with a chain of six generations, which speech's `voice` goes on with."""
    with served_organisation(tmp_path_factory.mktemp("lineage")) as served:
        for uid in ("run-clean", "run-train", "run-judge"):
            served.add_run(uid, "team", TEAM, "bob")
        served.add_run("run-secret", "voice", OTHER_TEAM, "otto")
        store = served.metadata_store
        link_runs(store, "team", CHAIN)
        secret = run_number(store, "run-secret")
        store.artifacts.lineage.add(version_number(served, "model"), secret, "", T0)
        voice = store.projects.id("voice")
        logged(store, voice, {"a": b"hidden"}, "hidden-model", run_id=secret)
        served.rights_changed()
        yield served


def lineage(
    served: ServedOrganisation, path: str, who: str | None = "bob", depth: int | None = None
) -> dict[str, Any]:
    """The graph of a run or version; fails unless it is sent."""
    query = "" if depth is None else f"?depth={depth}"
    response = served.ask(who, "GET", f"/api/v1{path}/lineage{query}")
    assert response.status_code == 200, response.text
    graph: dict[str, Any] = response.json()
    return graph


def artifact(name: str, alias: str = "latest", project: str = "team", entity: str = TEAM) -> str:
    return f"/entities/{entity}/projects/{project}/artifacts/{name}/{alias}"


def named(graph: dict[str, Any]) -> dict[str, int]:
    """The generations of the nodes by name; `?` for one without."""
    return {name_of(node): node["generation"] for node in graph["nodes"]}


def version_number(served: ServedOrganisation, name: str) -> int:
    store = served.metadata_store
    member = store.artifacts.collections.member(store.projects.id("team"), name)
    assert member is not None
    return member.version.id


def name_of(node: dict[str, Any]) -> str:
    shown = node[node["kind"]]
    if shown is None:
        return "?"
    if node["kind"] == "version":
        return f"{shown['name']}:v{shown['version']}"
    return str(shown["run"] if node["kind"] == "run" else shown["name"])


def edges(graph: dict[str, Any]) -> set[tuple[str, str]]:
    names = [name_of(node) for node in graph["nodes"]]
    return {(names[edge["source"]], names[edge["target"]]) for edge in graph["edges"]}


def test_a_version_leads_back_and_forth(vision: ServedOrganisation) -> None:
    graph = lineage(vision, artifact("clean"), depth=2)
    assert named(graph) == {
        "clean:v0": 0,
        "raw:v0": -2,
        "run-clean": -1,
        "run-train": 1,
        "model:v0": 2,
    }
    assert edges(graph) == {
        ("raw:v0", "run-clean"),
        ("run-clean", "clean:v0"),
        ("clean:v0", "run-train"),
        ("run-train", "model:v0"),
    }
    ends = {name_of(node): (node["more_before"], node["more_after"]) for node in graph["nodes"]}
    assert ends["model:v0"] == (False, True)
    assert {ends[name] for name in ends if name != "model:v0"} == {(False, False)}
    first = graph["nodes"][0]["version"]
    assert (first["entity"], first["project"], first["type"], first["deleted"]) == (
        TEAM,
        "team",
        "dataset",
        False,
    )
    assert graph["truncated"] is False


def test_a_run_leads_to_what_it_used_and_made(vision: ServedOrganisation) -> None:
    graph = lineage(vision, "/runs/run-train", depth=1)
    assert named(graph) == {"run-train": 0, "clean:v0": -1, "model:v0": 1}
    run = graph["nodes"][0]["run"]
    assert (run["entity"], run["project"], run["run"], graph["nodes"][0]["version"]) == (
        TEAM,
        "team",
        "run-train",
        None,
    )


def test_a_linked_version_leads_there_too(vision: ServedOrganisation) -> None:
    store, number = vision.metadata_store, version_number(vision, "model")
    project_id = store.projects.id("organisation")
    link = store.artifacts.links.link(number, project_id, "approved", ["prod"], T0)
    graph = lineage(vision, artifact("approved", "prod", "organisation"), depth=1)
    assert set(named(graph)) >= {"approved:v0", "run-train", "run-judge"}
    linked = lineage(vision, artifact("model"), depth=1)["nodes"][0]["version"]["links"]
    assert [(link["project"], link["name"], link["aliases"]) for link in linked] == [
        ("organisation", "approved", ["latest", "prod"])
    ]
    # Who reads only the registry follows the link, and learns no name of the project behind it.
    theirs = lineage(vision, artifact("approved", "prod", "organisation"), "otto", 1)
    store.artifacts.links.unlink(number, link.collection.id, T0)
    assert sorted(map(name_of, theirs["nodes"])) == ["?", "?", "approved:v0", "run-secret"]


def test_what_the_reader_may_not_read_has_no_name_and_nothing_behind_it(vision: ServedOrganisation) -> None:
    graph = lineage(vision, artifact("model"), depth=5)
    nameless = [node for node in graph["nodes"] if node["run"] is None and node["version"] is None]
    assert [(node["kind"], node["generation"]) for node in nameless] == [("run", 1)]
    assert (nameless[0]["more_before"], nameless[0]["more_after"]) == (False, False)
    assert ("model:v0", "?") in edges(graph)
    text = vision.ask("bob", "GET", f"/api/v1{artifact('model')}/lineage?depth=5").text
    assert "secret" not in text
    assert "hidden" not in text
    assert OTHER_TEAM not in text
    # The other team reads its own run, and the version that it used has no name.
    theirs = lineage(vision, "/runs/run-secret", "otto")
    assert named(theirs) == {"run-secret": 0, "?": -1, "hidden-model:v0": 1}
    assert "model:v0" not in edges(theirs)


@pytest.mark.parametrize("path", ["/runs/run-train", artifact("model")])
def test_who_may_not_read_it_learns_nothing(vision: ServedOrganisation, path: str) -> None:
    hidden = vision.ask("otto", "GET", f"/api/v1{path}/lineage")
    missing = vision.ask("otto", "GET", f"/api/v1{path}x/lineage")
    assert (hidden.status_code, missing.status_code) == (404, 404)
    assert hidden.text == missing.text.replace("run-trainx", "run-train").replace("latestx", "latest")
    assert vision.ask(None, "GET", f"/api/v1{path}/lineage").status_code == 401


def test_a_run_in_the_trash_and_a_deleted_version(vision: ServedOrganisation) -> None:
    """Of a deleted version it stays known who made it; a run in the trash has no name."""
    store = vision.metadata_store
    for uid in ("run-old", "run-binned"):
        vision.add_run(uid, "team", TEAM, "bob")
    versions = link_runs(store, "team", "run-old > first > run-binned > second")
    store.artifacts.versions.delete(versions["first"], T0, with_aliases=True)
    store.runs.delete([run_number(store, "run-binned")], NOW)
    graph = lineage(vision, "/runs/run-old")
    assert named(graph) == {"run-old": 0, "first:v0": 1, "?": 2}
    deleted = next(node["version"] for node in graph["nodes"] if node["version"])
    assert (deleted["deleted"], deleted["aliases"]) == (True, [])


@pytest.mark.parametrize("depth", ["0", "51", "x"])
def test_depth_is_bounded(vision: ServedOrganisation, depth: str) -> None:
    response = vision.ask("bob", "GET", f"/api/v1/runs/run-train/lineage?depth={depth}")
    assert response.status_code == 422
    assert "depth" in response.text


def test_without_accounts(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        store = served.metadata_store
        for uid in ("run-a", "run-b"):
            made(store, uid)
        link_runs(store, "digits", "data > run-a > model > run-b")
        graph = httpx.get(
            f"{served.url}/api/v1/projects/digits/artifacts/model/latest/lineage", timeout=PATIENCE_S
        ).json()
        assert named(graph) == {"model:v0": 0, "run-a": -1, "data:v0": -2, "run-b": 1}
        assert graph["nodes"][0]["version"]["entity"] is None
        assert (
            httpx.get(f"{served.url}/api/v1/runs/run-b/lineage", timeout=PATIENCE_S).json()["nodes"][0][
                "run"
            ]["run"]
            == "run-b"
        )
        assert httpx.get(f"{served.url}/api/v1/runs/none/lineage", timeout=PATIENCE_S).status_code == 404


class _Tree:
    """Each node is made from two others, of which there is no end."""

    def __init__(self) -> None:
        self.reads = 0

    def before(self, nodes: Any, limit: int) -> list[NodeKey]:
        self.reads += 1
        doubled = [NodeKey(node.kind, 2 * node.id + more) for node in nodes for more in (0, 1)]
        return doubled[:limit]

    def after(self, nodes: Any, limit: int) -> list[NodeKey]:
        return []


def test_a_walk_ends_at_the_most_nodes_and_the_time() -> None:
    tree, start = _Tree(), NodeKey("run", 1)
    walked = walk(start, MAX_DEPTH, tree, set, lambda: 0.0, most=100)
    assert (len(walked.generations), walked.truncated) == (100, True)
    assert tree.reads <= 8
    seconds = iter(range(100))
    slow = walk(start, MAX_DEPTH, _Tree(), set, lambda: float(next(seconds)), most=10**9)
    assert (slow.truncated, len(slow.generations) < 100) == (True, True)
    whole = walk(start, 3, _Tree(), set, lambda: 0.0)
    assert (len(whole.generations), whole.truncated) == (15, False)


def test_a_walk_ends_at_what_may_not_be_read() -> None:
    def even(nodes: Collection[NodeKey]) -> set[NodeKey]:
        return {node for node in nodes if node.id % 2 == 0}

    walked = walk(NodeKey("run", 1), 3, _Tree(), even, lambda: 0.0)
    assert sorted(node.id for node in walked.generations) == [1, 2, 3, 4, 5, 8, 9]


def test_datasets_and_logged_models_have_addresses(vision: ServedOrganisation) -> None:
    """They are listed, found by words, show what used them, and are known to nobody who may not read."""
    store = vision.metadata_store
    clean, train = (run_number(store, uid) for uid in ("run-clean", "run-train"))
    project, voice = store.projects.id("team"), store.projects.id("voice")
    rows = {"name": "rows/2026 <b>", "digest": "0f3a", "source_type": "s3", "source": "s3://lake/rows"}
    used = Lineage(datasets=[{"tags": [], "dataset": rows}], models=[{"model_id": "m-1"}])
    model = LoggedModel(
        "m-1", project, "net", "torch", "READY", "run-clean", {"lr": "0.1"}, {"a": "b"}, T0, T0
    )
    store.logged_models.add(model, clean)
    store.logged_models.add(LoggedModel("m-2", voice, "net", None, "READY", None, {}, {}, T0, T0))
    for number in (clean, train):
        store.run_lineage.add(number, used)
    values = [("accuracy", 0.5, "run-train"), ("loss", math.nan, "run-none")]
    store.logged_model_metrics.record(
        [ModelMetric("m-1", run, key, value, T0, 0) for key, value, run in values]
    )
    base = f"/entities/{TEAM}/projects/team"

    def get(path: str, who: str | None = "bob", status: int = 200) -> Any:
        response = vision.ask(who, "GET", f"/api/v1{path}")
        assert response.status_code == status, response.text
        return response.json()

    [listed] = get(f"{base}/datasets?text=lake%20ROWS")["datasets"]
    assert (listed["name"], listed["source"], listed["runs"]) == (rows["name"], rows["source"], 2)
    assert get(f"{base}/datasets?text=other") == {"datasets": [], "total": 0, "next": None}
    one = f"{base}/datasets/{listed['id']}"
    assert get(one) == {name: value for name, value in listed.items() if name != "runs"}
    assert named(lineage(vision, one, depth=1)) == {rows["name"]: 0, "run-clean": 1, "run-train": 1}
    detail = get(f"{base}/logged-models/m-1")
    assert (detail["params"], detail["tags"], detail["status"]) == ({"lr": "0.1"}, {"a": "b"}, "READY")
    told = [(row["key"], row["value"], row["run"]) for row in detail["metrics"]]
    assert told == [("accuracy", 0.5, "run-train"), ("loss", "nan", None)]
    assert [(row["model_id"], row["runs"]) for row in get(f"{base}/logged-models")["models"]] == [("m-1", 2)]
    assert named(lineage(vision, f"{base}/logged-models/m-1", depth=1))["run-train"] == 1
    # A node of a graph says what its address is; searches find both in what one may read.
    nodes = lineage(vision, "/runs/run-train", depth=1)["nodes"]
    assert [node["dataset"]["id"] for node in nodes if node["dataset"]] == [listed["id"]]
    assert [row["id"] for row in get("/artifacts?text=lake")["datasets"]] == [listed["id"]]
    assert [row["model_id"] for row in get("/artifacts?text=net")["models"]] == ["m-1"]
    assert [row["model_id"] for row in get("/artifacts?text=net", "otto")["models"]] == ["m-2"]
    for path in (
        "/datasets",
        f"/datasets/{listed['id']}",
        f"/datasets/{listed['id']}/lineage",
        "/logged-models/m-1",
    ):
        get(f"{base}{path}", "otto", 404)
        get(f"{base}{path}", None, 401)
    for path in ("/datasets/99", "/logged-models/m-2", "/logged-models/m-2/lineage", "/logged-models/%2e%2e"):
        get(f"{base}{path}", "bob", 404)
    get(f"{base}/datasets/{10**30}", "bob", 422)
    get(f"{base}/datasets/1/lineage?depth={10**9}", "bob", 422)
