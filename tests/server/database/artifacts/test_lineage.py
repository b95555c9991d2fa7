"""Lineage and the days of reads, on both databases."""

from __future__ import annotations

from runvitals.model.durations import DAY_MS
from runvitals.server.artifacts.lineage_walk import NodeKey
from runvitals.server.artifacts.storage.run_lineage import Lineage
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.registry.storage.logged_models import LoggedModel
from tests.server.artifacts.graph import link_runs, run_number
from tests.server.database.artifacts.making import T0
from tests.server.database.runs import made

ROWS = {"name": "rows", "digest": "33", "source_type": "code", "source": "x" * 1000}


def test_datasets_and_logged_models_are_between_runs(metadata_store: MetadataStore) -> None:
    """What is logged again has one node, and what does not exist has none."""
    store, graph = metadata_store, metadata_store.artifacts.lineage_graph
    for uid in ("run-a", "run-b"):
        made(store, uid)
    first, second = (run_number(store, uid) for uid in ("run-a", "run-b"))
    project = store.projects.id("digits")
    store.logged_models.add(LoggedModel("m-1", project, "net", None, "READY", "run-a", {}, {}, T0, T0), first)
    used = Lineage(
        datasets=[{"tags": [], "dataset": ROWS}], models=[{"model_id": "m-1"}, {"model_id": "m-2"}]
    )
    for _ in range(2):
        store.run_lineage.add(first, Lineage(used.datasets, outputs=[{"model_id": "m-1", "step": 3}]))
        store.run_lineage.add(second, used)
    [(dataset, shown)] = store.artifacts.logged_items.read("dataset", [1]).items()
    assert (shown.project, shown.shown["source"]) == ("digits", "x" * 500)
    run_a, run_b = NodeKey("run", first), NodeKey("run", second)
    [model] = [node for node in graph.after([run_a], 10) if node.kind == "model"]
    rows = NodeKey("dataset", dataset)
    assert store.artifacts.logged_items.read("model", [model.id])[model.id].shown["model_id"] == "m-1"
    assert (graph.before([run_a], 10), graph.after([rows], 10)) == ([rows], [run_b, run_a])
    assert sorted(graph.before([run_b], 10)) == [rows, model]
    edges = {(rows, run_a), (rows, run_b), (run_a, model), (model, run_b)}
    assert set(graph.edges([run_a, run_b, rows, model], 10)) == edges
    ends = graph.ends([run_a, rows])
    assert (ends.before, ends.after) == (frozenset(), {run_a, rows})


def test_what_depends_on_the_versions_of_a_run_and_of_a_project(metadata_store: MetadataStore) -> None:
    store, dependents = metadata_store, metadata_store.artifacts.dependents
    for uid in ("run-a", "run-b"):
        made(store, uid)
    made(store, "run-else", project="letters")
    versions = link_runs(store, "digits", "data > run-a > model > run-b")
    store.artifacts.lineage.add(versions["model"], run_number(store, "run-else"), "", T0)
    of_run = dependents.of_run(run_number(store, "run-a"))
    assert (of_run.run_count, of_run.version_count, of_run.links) == (2, 0, ())
    of_project = dependents.of_project(store.projects.id("digits"))
    assert of_project.runs == (run_number(store, "run-else"),)
    [size] = store.artifacts.collections.of_entity(None)
    assert (size.project_id, size.expiring) == (store.projects.id("digits"), 0)


def test_a_read_is_noted_once_a_day_and_never_taken_back(metadata_store: MetadataStore) -> None:
    store = metadata_store
    made(store, "run-a")
    number, project = run_number(store, "run-a"), store.projects.id("digits")
    for time_ms, day in ((5 * DAY_MS, 5), (4 * DAY_MS, 5), (7 * DAY_MS, 7)):
        store.read_days.note_run(number, time_ms)
        store.read_days.note_run(number + 1, time_ms)  # it was removed meanwhile
        store.read_days.write()
        assert [row.read_day for row in store.accounts.run_storage(None, project)] == [day]
