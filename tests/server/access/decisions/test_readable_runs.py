"""The runs of lists are those that `decide` allows one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.model.errors import AmbiguousName, UnknownRun
from runvitals.model.filter import ReadableRuns
from runvitals.server.access.actions import Action
from runvitals.server.access.decisions.decision import Decision, decide
from runvitals.server.access.decisions.directory import Directory
from runvitals.server.access.decisions.policies import OrganisationPolicies
from runvitals.server.access.decisions.readable_runs import readable_runs
from runvitals.server.access.principals import Anonymous, GuestLink, Operator, ServiceAccount, User
from runvitals.server.access.resources import Project, ProjectItem, Visibility
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.run_places import RunPlace
from runvitals.server.runs.storage.writer_registration import Sender, WriterRegistration
from tests.empty_metadata import new_metadata_store
from tests.server.access.decisions.test_decision_properties import (
    owners,
    policies,
    services,
    spaces,
    switches,
    teams,
    users,
)
from tests.server.access.decisions.test_directory import T0, Clock

principals = users | services | st.just(Anonymous()) | st.builds(GuestLink, st.just("project"), st.just(3))
project_lists = st.lists(
    st.builds(
        Project,
        st.integers(1, 8),
        teams | spaces,
        st.sampled_from(Visibility),
        owners,
        switches,
        switches,
    ),
    unique_by=lambda project: project.id,
    max_size=8,
)


def allowed(principal: Any, run: ProjectItem, policy: OrganisationPolicies) -> bool:
    return decide(principal, Action.RUN_READ, run, policy) is Decision.ALLOWED


def is_listed(readable: ReadableRuns, run: ProjectItem) -> bool:
    run_place = RunPlace(
        run.id, "", run.project.id, None, None, run.author_id, run.service_account_id, run.deleted, ""
    )
    return readable.has(run_place)


@given(principals, project_lists, policies, owners, st.none() | st.just(6) | st.just(5), switches)
def test_a_run_is_listed_if_and_only_if_it_may_be_read(
    principal: Any,
    projects: list[Project],
    policy: OrganisationPolicies,
    author_id: int | None,
    service_account_id: int | None,
    deleted: bool,
) -> None:
    readable = readable_runs(principal, projects, policy)
    for project in projects:
        run = ProjectItem("run", 9, project, author_id, service_account_id, deleted)
        assert is_listed(readable, run) is allowed(principal, run, policy)


@given(users | services | st.just(Anonymous()), project_lists, policies)
def test_the_projects_whose_runs_are_listed_may_be_read(
    principal: Any, projects: list[Project], policy: OrganisationPolicies
) -> None:
    readable = readable_runs(principal, projects, policy).projects
    living = [project for project in projects if not project.deleted]
    for project in living:
        may_read = decide(principal, Action.PROJECT_READ, project, policy) is Decision.ALLOWED
        assert (project.id in readable) is may_read


class Server:
    """Two teams with a project each, and a third project that nobody adopted."""

    def __init__(self, metadata_store: MetadataStore) -> None:
        self.metadata_store = metadata_store
        self.clock = Clock()
        self.directory = Directory(metadata_store, self.clock.now_ms, self.clock.monotonic)
        accounts = metadata_store.accounts
        self.ada = accounts.users.create("ada", CLI, T0, org_role="admin").id
        self.bob = accounts.users.create("bob", CLI, T0).id
        self.digits = self.project("otter-1", "digits")
        self.vision = accounts.teams.create("vision", CLI, T0, administrator=self.ada)
        accounts.teams.adopt(self.vision.id, CLI, T0)
        self.of_vision = frozenset({self.digits})
        self.letters = self.project("otter-2", "letters")
        self.speech = accounts.teams.create("speech", CLI, T0, administrator=self.bob)
        accounts.teams.adopt(self.speech.id, CLI, T0)
        self.unowned = self.project("otter-3", "unowned")
        self.directory.rights_changed()

    def project(self, uid: str, name: str) -> int:
        self.metadata_store.writers.join([WriterRegistration(uid, "monitor.a.1", name)], T0)
        return self.metadata_store.projects.id(name)

    def user(self, user_id: int) -> User:
        user = self.directory.user(user_id)
        assert user is not None
        return user


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with new_metadata_store(tmp_path / "catalogue.db") as metadata_store:
        yield Server(metadata_store)


def test_each_user_reads_the_projects_of_their_team(server: Server) -> None:
    directory = server.directory
    assert directory.readable_runs(Operator()) is None
    ada = directory.readable_runs(server.user(server.ada))
    assert ada == ReadableRuns(server.of_vision, server.of_vision, author_id=server.ada)
    assert directory.readable_runs(Anonymous()) == ReadableRuns()
    assert directory.readable_runs(ServiceAccount(9, server.speech.id)) == ReadableRuns(
        frozenset({server.letters}), own_trash=frozenset({server.letters}), service_account_id=9
    )


def test_a_change_of_rights_changes_the_lists(server: Server) -> None:
    directory, accounts = server.directory, server.metadata_store.accounts
    assert directory.readable_runs(Anonymous()) == ReadableRuns()
    accounts.settings.put({"anonymous_access": "read"}, CLI, T0)
    accounts.owned_projects.update(server.digits, CLI, T0, visibility="public")
    directory.rights_changed()
    both = frozenset({server.digits, server.letters})
    assert directory.readable_runs(Anonymous()) == ReadableRuns(frozenset({server.digits}))
    bob = directory.readable_runs(server.user(server.bob))
    assert bob is not None
    assert bob.projects == both
    accounts.members.add("speech", "ada", "viewer", CLI, T0)
    server.clock.ms += 500  # as in another process, which rereads the generation
    ada = directory.readable_runs(server.user(server.ada))
    assert ada is not None
    assert ada.projects == both | server.of_vision
    assert (ada.trash, ada.own_trash) == (server.of_vision, frozenset())


def test_a_link_to_a_run_reads_that_run_alone(server: Server) -> None:
    run_place = server.metadata_store.runs.places("otter-1")[0]
    link = GuestLink("run", run_place.run_id)
    assert server.directory.readable_runs(link) == ReadableRuns(run_id=run_place.run_id)
    server.metadata_store.runs.delete([run_place.run_id], T0)
    assert server.directory.readable_runs(link) == ReadableRuns()
    assert server.directory.readable_runs(GuestLink("run", 999)) == ReadableRuns()
    project = server.directory.readable_runs(GuestLink("project", server.letters))
    assert project == ReadableRuns(frozenset({server.letters}))


def test_a_run_is_found_in_the_default_entity_first(server: Server) -> None:
    directory, writers = server.directory, server.metadata_store.writers
    speech = Sender(server.speech.id)
    [theirs] = writers.join([WriterRegistration("otter-1", "monitor.a.1", "letters", sender=speech)], T0)
    accounts = server.metadata_store.accounts
    ours = server.metadata_store.runs.places("otter-1")[0].run_id
    assert directory.find_run(server.user(server.ada), "otter-1").id == ours
    assert directory.find_run(server.user(server.bob), "otter-1").id == theirs.run_id
    with pytest.raises(UnknownRun, match="there is no run 'otter-1'"):
        directory.find_run(server.user(server.bob), "otter-1", "vision")
    accounts.members.add("speech", "ada", "viewer", CLI, T0)
    directory.rights_changed()
    ada = server.user(server.ada)
    with pytest.raises(AmbiguousName, match="speech, vision each have a run 'otter-1'"):
        directory.find_run(ada, "otter-1")
    assert directory.find_run(ada, "otter-1", "Speech").id == theirs.run_id
    accounts.profiles.put(server.ada, {"default_entity_id": server.vision.id}, CLI, T0)
    directory.rights_changed()
    assert directory.find_run(server.user(server.ada), "otter-1").id == ours
    with pytest.raises(UnknownRun):
        directory.find_run(Anonymous(), "otter-1")


def test_a_run_is_found_as_soon_as_it_exists(server: Server) -> None:
    directory, writers = server.directory, server.metadata_store.writers
    bob, speech = server.user(server.bob), Sender(server.speech.id)
    with pytest.raises(UnknownRun):
        directory.find_run(bob, "new-1")
    [new] = writers.join([WriterRegistration("new-1", "monitor.a.1", "letters", sender=speech)], T0)
    assert directory.find_run(bob, "new-1").id == new.run_id
