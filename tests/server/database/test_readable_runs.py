"""Lists show only what a principal may read, with any filter and order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import update

from runvitals.model.filter import Filter, Predicate, ReadableRuns
from runvitals.model.run_sort import SORTED_COLUMNS, RunSort
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.database.tables.runs import run
from runvitals.server.metadata_store import MetadataStore
from tests.server.database.runs import T0, made, uids

ME = 1


@pytest.fixture(scope="module")
def readable(shared_store: MetadataStore) -> ReadableRuns:
    return filled(shared_store)


def filled(metadata_store: MetadataStore) -> ReadableRuns:
    """Two runs of our project, and two of another team's, with other names for everything."""
    for number in (1, 2):
        for mark, project in (("ours", "ours-project"), ("secret", "secret-project")):
            made(
                metadata_store,
                f"{mark}-{number}",
                project=project,
                run={"name": f"{mark}-name-{number}", "tags": [f"{mark}-tag"], "notes": "word"},
                config={f"{mark}_key": number, "shared": number},
                summary={f"{mark}_loss": number / 2},
            )
    return ReadableRuns(frozenset({metadata_store.projects.id("ours-project")}))


def test_nothing_of_another_team_is_in_any_list(shared_store: MetadataStore, readable: ReadableRuns) -> None:
    run_filter = Filter(readable=readable)
    runs = shared_store.runs
    assert uids(shared_store, Filter()) == ["secret-2", "ours-2", "secret-1", "ours-1"]
    assert uids(shared_store, run_filter) == ["ours-2", "ours-1"]
    assert runs.count(run_filter, T0) == 2
    assert runs.count(run_filter, T0, up_to=1) == 1
    assert set(runs.ids(run_filter, T0)) == {
        place.run_id for n in (1, 2) for place in runs.places(f"ours-{n}")
    }
    assert runs.counts(run_filter, "project", T0) == {"ours-project": 2}
    assert runs.counts(run_filter, "tag", T0) == {"ours-tag": 2}
    assert runs.counts(run_filter, "state", T0) == {"running": 2}
    assert runs.fields(run_filter, T0) == ["config.ours_key", "config.shared", "summary.ours_loss"]
    listed = shared_store.projects.all(T0, readable)
    assert [(project.name, project.runs, project.running) for project in listed] == [("ours-project", 2, 2)]


@pytest.mark.parametrize("by", [*SORTED_COLUMNS, "config.shared", "config.secret_key", "summary.ours_loss"])
def test_pages_in_every_order(shared_store: MetadataStore, readable: ReadableRuns, by: str) -> None:
    for descending in (True, False):
        listed = uids(shared_store, Filter(readable=readable), by, descending, limit=1)
        assert sorted(listed) == ["ours-1", "ours-2"]


@pytest.mark.parametrize(
    "hidden",
    [
        Filter(project="secret-project"),
        Filter(text="secret"),
        Filter(text="se"),
        Filter(tags=("secret-tag",)),
        Filter(where=(Predicate.parse("config.secret_key > 0"),)),
        Filter(where=(Predicate.parse("id = secret-1"),)),
    ],
)
def test_no_filter_finds_the_runs_of_another_team(
    shared_store: MetadataStore, readable: ReadableRuns, hidden: Filter
) -> None:
    assert shared_store.runs.count(hidden, T0) > 0
    run_filter = replace(hidden, readable=readable)
    assert uids(shared_store, run_filter) == []
    assert shared_store.runs.count(run_filter, T0) == 0
    assert shared_store.runs.fields(run_filter, T0) == []


@pytest.mark.parametrize(
    "both",
    [
        Filter(project="ours-project"),
        Filter(text="word"),
        Filter(states=("running",)),
        Filter(where=(Predicate.parse("config.shared > 0"),)),
    ],
)
def test_filters_that_match_both_teams_find_ours(
    shared_store: MetadataStore, readable: ReadableRuns, both: Filter
) -> None:
    assert uids(shared_store, replace(both, readable=readable)) == ["ours-2", "ours-1"]


def test_a_cursor_of_somebody_else_reaches_no_more(
    shared_store: MetadataStore, readable: ReadableRuns
) -> None:
    runs, sort = shared_store.runs, RunSort("name", descending=False)
    theirs = runs.page(Filter(), sort, T0, limit=3).next
    page = runs.page(Filter(readable=readable), sort, T0, after=theirs)
    assert [row.uid for row in page.runs] == []
    first = runs.page(Filter(), sort, T0, limit=1).next
    page = runs.page(Filter(readable=readable), sort, T0, after=first)
    assert [row.uid for row in page.runs] == ["ours-2"]


def test_the_trash_shows_what_one_may_delete(metadata_store: MetadataStore) -> None:
    readable = filled(metadata_store)
    user = metadata_store.accounts.users.create("ada", CLI, T0).id
    runs = metadata_store.runs
    numbers = {uid: runs.places(uid)[0].run_id for uid in ("ours-1", "ours-2", "secret-1")}
    runs.delete(numbers.values(), T0)
    mine = update(run).where(run.c.id == numbers["ours-2"])
    metadata_store.write(lambda connection: connection.execute(mine.values(author_id=user)))
    ours = readable.projects

    def trash(**rights: frozenset[int] | int) -> list[str]:
        rights_now = replace(readable, **rights)  # type: ignore[arg-type]
        run_filter = Filter(deleted=True, readable=rights_now)
        assert runs.count(run_filter, T0) == len(uids(metadata_store, run_filter))
        return uids(metadata_store, run_filter)

    assert trash() == []
    assert trash(trash=ours) == ["ours-2", "ours-1"]
    assert trash(own_trash=ours) == []
    assert trash(own_trash=ours, author_id=user) == ["ours-2"]
    assert trash(own_trash=ours, service_account_id=user) == []
    assert uids(metadata_store, Filter(readable=readable)) == []


def test_a_guest_link_shows_one_run(metadata_store: MetadataStore) -> None:
    filled(metadata_store)
    number = metadata_store.runs.places("secret-1")[0].run_id
    link = Filter(readable=ReadableRuns(run_id=number))
    assert uids(metadata_store, link) == ["secret-1"]
    assert uids(metadata_store, replace(link, text="word")) == ["secret-1"]
    assert uids(metadata_store, replace(link, project="ours-project")) == []
    assert metadata_store.projects.all(T0, link.readable) == []
    metadata_store.runs.delete([number], T0)
    assert uids(metadata_store, link) == []
    assert uids(metadata_store, replace(link, deleted=True)) == []
