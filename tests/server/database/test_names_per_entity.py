"""Two teams may have projects and runs of the same name, and neither sees the other's."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from runvitals.model.errors import AmbiguousName, UnknownProject
from runvitals.model.filter import Filter, ReadableRuns
from runvitals.model.run import RunAuthor, RunServiceAccount
from runvitals.model.run_sort import RunSort
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.projects.storage.projects import ProjectOwner
from runvitals.server.runs.storage.sections import SectionUpdate
from runvitals.server.runs.storage.writer_registration import RegisteredWriter, Sender, WriterRegistration
from runvitals.store.errors import NameTaken
from tests.server.database.runs import T0, joined, uids

MONITOR = "monitor.node1.a"


@dataclass
class Teams:
    """Two teams, a user of each, and a service account of the first."""

    metadata_store: MetadataStore

    def __post_init__(self) -> None:
        accounts = self.metadata_store.accounts
        self.ada = accounts.users.create("ada", CLI, T0, display_name="Ada L.").id
        self.bob = accounts.users.create("bob", CLI, T0).id
        self.vision = accounts.teams.create("vision", CLI, T0, administrator=self.ada).id
        self.speech = accounts.teams.create("speech", CLI, T0, administrator=self.bob).id
        self.ci = accounts.service_accounts.create("ci", self.vision, CLI, T0).id

    def sends(
        self, uid: str, entity_id: int, project: str | None = "digits", **sender: int
    ) -> RegisteredWriter:
        registration = WriterRegistration(uid, MONITOR, project, sender=Sender(entity_id, **sender))
        return self.metadata_store.writers.join([registration], T0)[0]


@pytest.fixture
def teams(metadata_store: MetadataStore) -> Teams:
    return Teams(metadata_store)


def test_the_same_names_in_two_teams(metadata_store: MetadataStore, teams: Teams) -> None:
    ours = teams.sends("otter-1", teams.vision, author_id=teams.ada)
    theirs = teams.sends("otter-1", teams.speech, author_id=teams.bob)
    assert ours.run_id != theirs.run_id
    assert ours.project_id != theirs.project_id
    assert teams.sends("otter-1", teams.vision) == ours
    assert [(p.run_id, p.entity) for p in metadata_store.runs.places("otter-1")] == [
        (ours.run_id, "vision"),
        (theirs.run_id, "speech"),
    ]
    with pytest.raises(AmbiguousName, match="several teams or users have a run 'otter-1'"):
        metadata_store.runs.find("otter-1", T0)
    with pytest.raises(AmbiguousName, match="several teams or users have a project 'digits'"):
        metadata_store.projects.id("digits")
    readable = ReadableRuns(frozenset({theirs.project_id}))
    assert metadata_store.projects.id("digits", readable) == theirs.project_id
    with pytest.raises(UnknownProject):
        metadata_store.projects.id("digits", ReadableRuns())
    assert [(p.name, p.entity) for p in metadata_store.projects.all(T0)] == [
        ("digits", "speech"),
        ("digits", "vision"),
    ]


def test_runs_are_filtered_sorted_and_counted_by_entity_and_author(
    metadata_store: MetadataStore, teams: Teams
) -> None:
    teams.sends("of-ada", teams.vision, author_id=teams.ada)
    teams.sends("of-ci", teams.vision, service_account_id=teams.ci)
    teams.sends("of-bob", teams.speech, author_id=teams.bob)
    joined(metadata_store, "of-nobody")
    assert uids(metadata_store, Filter(entity="vision"), "id", False) == ["of-ada", "of-ci"]
    assert uids(metadata_store, Filter(entity="vision", project="letters")) == []
    assert uids(metadata_store, Filter(entity="nobody")) == []
    assert uids(metadata_store, Filter(author="bob")) == ["of-bob"]
    assert uids(metadata_store, Filter(author="ci")) == []
    assert uids(metadata_store, Filter(project="digits"), "id", False) == [
        "of-ada",
        "of-bob",
        "of-ci",
        "of-nobody",
    ]
    for limit in (1, 1000):
        assert uids(metadata_store, by="author", descending=False, limit=limit)[2:] == ["of-ada", "of-bob"]
        assert uids(metadata_store, by="entity", limit=limit) == ["of-ci", "of-ada", "of-bob", "of-nobody"]
    assert metadata_store.runs.counts(Filter(), "author", T0) == {"": 2, "ada": 1, "bob": 1}


def test_a_row_names_whose_the_run_is(metadata_store: MetadataStore, teams: Teams) -> None:
    teams.sends("otter-1", teams.vision, author_id=teams.ada, service_account_id=teams.ci)
    teams.sends("otter-2", teams.speech, author_id=teams.bob)

    def row(uid: str) -> object:
        run = metadata_store.runs.find(uid, T0)
        assert run is not None
        return run.entity, run.author, run.service_account

    ada = RunAuthor(teams.ada, "ada", "Ada L.")
    assert row("otter-1") == ("vision", ada, RunServiceAccount(teams.ci, "ci", deleted=False))
    metadata_store.accounts.service_accounts.delete(teams.ci, CLI, T0)
    assert row("otter-1") == ("vision", ada, RunServiceAccount(teams.ci, "ci", deleted=True))
    accounts = metadata_store.accounts
    accounts.users.create("eve", CLI, T0, org_role="admin")
    accounts.members.add("speech", "eve", "admin", CLI, T0)
    accounts.users.delete(teams.bob, CLI, T0)
    assert row("otter-2") == ("speech", RunAuthor(teams.bob, None, "deleted user"), None)
    assert uids(metadata_store, Filter(author="bob")) == []


def test_the_author_of_a_run_is_who_sent_it_first(metadata_store: MetadataStore, teams: Teams) -> None:
    teams.sends("otter-1", teams.vision, author_id=teams.ada)
    rank = WriterRegistration(
        "otter-1", "train.node2.7.b", "digits", sender=Sender(teams.vision, author_id=teams.bob)
    )
    [second] = metadata_store.writers.join([rank], T0)
    assert second.author_id == teams.ada


def test_a_record_moves_a_run_within_its_team(metadata_store: MetadataStore, teams: Teams) -> None:
    teams.sends("otter-2", teams.speech, "letters")
    ours = teams.sends("otter-1", teams.vision, None)
    teams.sends("otter-1", teams.speech, None)
    metadata_store.sections.merge([SectionUpdate(ours.run_id, "run", {"project": "letters"}, T0)])
    places = {place.entity: place for place in metadata_store.runs.places("otter-1")}
    letters = dict(metadata_store.projects.named("letters"))
    assert set(letters) == {teams.vision, teams.speech}
    assert places["vision"].project_id == letters[teams.vision]
    assert places["speech"].project_id not in letters.values()


def test_a_later_writer_names_the_project(metadata_store: MetadataStore, teams: Teams) -> None:
    first = teams.sends("otter-1", teams.vision, None)
    rank = WriterRegistration("otter-1", "train.node2.7.b", "digits", sender=Sender(teams.vision))
    [second] = metadata_store.writers.join([rank], T0)
    assert (second.run_id, second.project_id != first.project_id) == (first.run_id, True)
    place = metadata_store.runs.place(first.run_id)
    assert place is not None
    assert dict(metadata_store.projects.named("digits")) == {teams.vision: place.project_id}


def test_a_run_deleted_for_good_does_not_come_back(metadata_store: MetadataStore, teams: Teams) -> None:
    ours = teams.sends("otter-1", teams.vision)
    theirs = teams.sends("otter-1", teams.speech)
    without = joined(metadata_store, "otter-1")
    metadata_store.runs.delete([ours.run_id, without.run_id], T0)
    metadata_store.runs.purge([ours.run_id, without.run_id, theirs.run_id], T0)
    again = teams.sends("otter-1", teams.vision)
    assert again.deleted
    assert again.purged
    assert teams.sends("otter-1", teams.speech) == theirs
    new = joined(metadata_store, "otter-1")  # as ever in a store without accounts
    assert (new.deleted, new.run_id > without.run_id) == (False, True)
    assert [place.entity for place in metadata_store.runs.places("otter-1")] == ["speech", None]


def test_a_team_adopts_what_has_no_owner(metadata_store: MetadataStore, teams: Teams) -> None:
    kept = teams.sends("otter-1", teams.vision)
    for number, name in enumerate(("digits", "a/b", "a-b")):
        joined(metadata_store, f"old-{number}", project=name)
    assert metadata_store.accounts.teams.adopt(teams.vision, CLI, T0) == 3
    names = {project.name: project.id for project in metadata_store.projects.all(T0)}
    assert set(names) == {"digits", "digits-2", "a-b", "a-b-2"}
    assert kept.project_id == names["digits"]
    for number in range(3):
        again = teams.sends(f"old-{number}", teams.vision)
        assert [place.run_id for place in metadata_store.runs.places(f"old-{number}")] == [again.run_id]
    joined(metadata_store, "otter-1")
    with pytest.raises(NameTaken, match="already has a run 'otter-1'"):
        metadata_store.accounts.teams.adopt(teams.vision, CLI, T0)


def test_a_project_is_given_away_with_its_runs(metadata_store: MetadataStore, teams: Teams) -> None:
    ours = teams.sends("otter-1", teams.vision)
    transfer = metadata_store.accounts.project_members.transfer
    transfer(ours.project_id, teams.speech, CLI, T0)
    assert teams.sends("otter-1", teams.speech) == ours
    second = teams.sends("otter-1", teams.vision, "letters")
    with pytest.raises(NameTaken, match="already has a run 'otter-1'"):
        transfer(second.project_id, teams.speech, CLI, T0)
    third = teams.sends("otter-3", teams.vision, "digits")
    with pytest.raises(NameTaken, match="already has a project 'digits'"):
        transfer(third.project_id, teams.speech, CLI, T0)
    assert {place.entity for place in metadata_store.runs.places("otter-3")} == {"vision"}


def test_projects_are_renamed_within_their_team(metadata_store: MetadataStore, teams: Teams) -> None:
    ours, theirs = teams.sends("otter-1", teams.vision), teams.sends("otter-2", teams.speech, "letters")
    metadata_store.projects.rename(theirs.project_id, "digits", now_ms=0)
    second = teams.sends("otter-3", teams.vision, "letters")
    with pytest.raises(ValueError, match="already exists"):
        metadata_store.projects.rename(second.project_id, "digits", now_ms=0)
    assert ours.project_id != theirs.project_id


def test_a_new_project_changes_the_generation_of_rights(metadata_store: MetadataStore, teams: Teams) -> None:
    before = metadata_store.accounts.generation()
    owner = ProjectOwner(teams.vision, teams.ada, "restricted")
    number = metadata_store.projects.ensure("digits", owner, T0)
    after = metadata_store.accounts.generation()
    assert after > before
    assert metadata_store.projects.ensure("digits", replace(owner, user_id=teams.bob), T0) == number
    teams.sends("otter-1", teams.vision)
    assert metadata_store.accounts.generation() == after
    project = metadata_store.accounts.project_members.get(number)
    assert (project.owner_id, project.visibility) == (teams.ada, "restricted")


def test_a_store_without_accounts_has_one_set_of_names(metadata_store: MetadataStore) -> None:
    first, again = joined(metadata_store, "otter-1"), joined(metadata_store, "otter-1", project="letters")
    assert first == again
    page = metadata_store.runs.page(Filter(), RunSort(), T0)
    assert [(row.entity, row.author, row.service_account) for row in page.runs] == [(None, None, None)]


def test_a_record_creates_no_project_that_more_people_see_than_others(
    metadata_store: MetadataStore, teams: Teams
) -> None:
    accounts = metadata_store.accounts
    ours = teams.sends("otter-1", teams.vision, author_id=teams.ada)
    for default, expected in (("restricted", "restricted"), ("private", "restricted"), ("public", "team")):
        accounts.teams.update("vision", CLI, T0, default_visibility=default)
        metadata_store.sections.merge([SectionUpdate(ours.run_id, "run", {"project": default}, T0)])
        [(_, number)] = metadata_store.projects.named(default)
        project = accounts.project_members.get(number)
        assert (project.visibility, project.owner_id) == (expected, teams.ada)
