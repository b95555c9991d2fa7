"""Sweeps in the store: names, states, agents and runs, on both databases."""

from __future__ import annotations

import pytest

from runvitals.model.errors import UnknownRun
from runvitals.model.filter import Filter, Labelled, Term, TextPattern
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.sweeps.storage.rows import NewSweep, Sweep, SweepConflict, UnknownSweep
from runvitals.server.sweeps.storage.runs import RunOutcome
from tests.server.database.runs import T0, made, uids


@pytest.fixture
def sweep(metadata_store: MetadataStore) -> Sweep:
    made(metadata_store, "first")
    project = metadata_store.projects.id("digits")
    return metadata_store.sweeps.sweeps.create(NewSweep(project, "method: grid", "{}", 7), T0)


def test_a_sweep_is_found_by_its_name_and_in_its_project(metadata_store: MetadataStore, sweep: Sweep) -> None:
    table = metadata_store.sweeps.sweeps
    other = table.create(NewSweep(sweep.project_id, "a: b", "{}", 7, display_name="x\x00" * 9000), T0 + 1)
    assert other.name != sweep.name
    assert table.named(sweep.project_id, sweep.name) == sweep
    assert table.named(sweep.project_id, "none\x00") is None
    assert table.of_project(sweep.project_id) == ([other, sweep], 2)
    assert table.of_project(sweep.project_id, skip=1, limit=1) == ([sweep], 2)
    table.delete(other.id)
    with pytest.raises(UnknownSweep):
        table.get(other.id)
    with pytest.raises(UnknownSweep):
        table.delete(other.id)


def test_a_state_is_reached_from_some_states_only(metadata_store: MetadataStore, sweep: Sweep) -> None:
    table = metadata_store.sweeps.sweeps
    assert table.set_state(sweep.id, "paused", T0 + 5, ("pending",)).changed_ms == T0 + 5
    assert table.set_state(sweep.id, "paused", T0 + 9, ("pending",)).changed_ms == T0 + 5
    with pytest.raises(SweepConflict, match="is paused: it cannot become finished"):
        table.set_state(sweep.id, "finished", T0, ("running",))
    table.set_state(sweep.id, "canceled", T0, ("paused",))
    table.finish(sweep.id, T0)
    assert table.get(sweep.id).state == "canceled"


def test_a_place_of_the_search_is_assigned_once(metadata_store: MetadataStore, sweep: Sweep) -> None:
    sweeps = metadata_store.sweeps
    agent = sweeps.agents.add(sweep.id, "node1", T0)
    run = sweeps.runs.assign(sweep.id, 0, {"lr": 0.1}, agent.id, T0)
    assert (run.state, run.parameters, run.tries) == ("assigned", {"lr": 0.1}, 1)
    assert sweeps.runs.assign(sweep.id, 0, {"lr": 0.1}, agent.id, T0) is None
    assert sweeps.sweeps.get(sweep.id).places == 1
    again = sweeps.runs.reassign(run, agent.id)
    assert again.tries == 2
    assert sweeps.runs.reassign(run, agent.id) is None
    assert [(found.id, count) for found, count in sweeps.agents.of_sweep(sweep.id)] == [(agent.id, 1)]


def test_the_run_of_a_silent_agent_is_abandoned_until_it_begins(
    metadata_store: MetadataStore, sweep: Sweep
) -> None:
    sweeps = metadata_store.sweeps
    agent = sweeps.agents.add(sweep.id, "node1", T0)
    run = sweeps.runs.assign(sweep.id, 0, {}, agent.id, T0)
    assert sweeps.runs.abandoned(sweep.id, T0) is None
    assert sweeps.runs.abandoned(sweep.id, T0 + 1) == run
    sweeps.agents.heard(agent.id, T0 + 9)
    assert sweeps.runs.abandoned(sweep.id, T0 + 1) is None
    sweeps.runs.begin(sweep.id, run.run_name, made(metadata_store, "second"), T0)
    assert sweeps.runs.abandoned(sweep.id, T0 + 99) is None


def test_runs_begin_stop_and_end(metadata_store: MetadataStore, sweep: Sweep) -> None:
    runs = metadata_store.sweeps.runs
    numbers = {name: made(metadata_store, name) for name in ("a", "b")}
    for name, number in (*numbers.items(), *numbers.items()):
        runs.begin(sweep.id, name, number, T0)
    a, b = runs.unended(sweep.id)
    assert metadata_store.sweeps.sweeps.get(sweep.id).state == "running"
    runs.mark(a.id, [0.5, 0.25])
    runs.stop(a.id)
    runs.begin(sweep.id, "a", numbers["a"], T0)
    assert runs.named(sweep.id, ["a", "missing"])[0].state == "stopping"
    assert runs.marks(sweep.id, 10) == [(a.id, (0.5, 0.25))]
    runs.end({a.id: RunOutcome(0.25, {"lr": 1}), b.id: RunOutcome(None, None)})
    assert (runs.unended(sweep.id), runs.count(sweep.id)) == ([], 2)
    assert (runs.best_value(sweep.id, True), runs.newest(sweep.id, 1)[0].parameters) == (0.25, {"lr": 1})
    assert runs.sweeps_of(numbers.values()) == dict.fromkeys(numbers.values(), sweep.name)
    with pytest.raises(UnknownRun):
        runs.begin(sweep.id, "c", 9999, T0)


def test_runs_are_filtered_by_their_sweep(metadata_store: MetadataStore, sweep: Sweep) -> None:
    metadata_store.sweeps.runs.begin(sweep.id, "mine", made(metadata_store, "mine"), T0)
    by_name = Labelled("sweep", (TextPattern(sweep.name),))
    assert uids(metadata_store, Filter(terms=(Term(by_name),))) == ["mine"]
    assert uids(metadata_store, Filter(terms=(Term(by_name, negated=True),))) == ["first"]
    for pattern in (TextPattern("*", "glob"), TextPattern("^[a-z0-9]{8}$", "regex")):
        assert uids(metadata_store, Filter(terms=(Term(Labelled("sweep", (pattern,))),))) == ["mine"]
    metadata_store.sweeps.sweeps.delete(sweep.id)
    assert uids(metadata_store, Filter(terms=(Term(by_name),))) == []
