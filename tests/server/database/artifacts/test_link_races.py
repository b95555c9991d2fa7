"""A version is linked while it, its artifact, its project or its team is deleted: one of both is refused."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from runvitals.server.artifacts.storage.rows import ArtifactConflict, LinkedVersions, UnknownArtifact
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.projects.storage.projects import ProjectOwner
from tests.patience import PATIENCE_S
from tests.server.database.artifacts.making import T0, logged

DELETIONS = ("version", "collection", "project", "team", "expired")


class Race:
    """A version of the team `vision`, which is deleted and linked to the registry of another team."""

    def __init__(self, store: MetadataStore, deletion: str) -> None:
        teams = store.accounts.teams
        team = teams.create("vision", CLI, T0).id
        other = teams.create("voice", CLI, T0).id
        project = store.projects.ensure("digits", ProjectOwner(team), T0)
        registry = store.projects.ensure("wandb-registry-model", ProjectOwner(other), T0)
        ttl_s = 1 if deletion == "expired" else None
        version = logged(store, project, {"a": b"1"}, ttl_s=ttl_s)
        artifacts, dependents = store.artifacts, store.artifacts.dependents
        projects = store.accounts.owned_projects

        def delete_expired() -> None:
            if not artifacts.versions.delete_expired(T0 + 2000, T0):
                raise LinkedVersions([])

        deletions: dict[str, Callable[[], object]] = {
            "version": lambda: artifacts.versions.delete(version.id, T0, with_aliases=True),
            "collection": lambda: artifacts.collections.delete(version.collection.id),
            "project": lambda: dependents.delete_project(project, lambda: projects.trash(project, CLI, T0)),
            "team": lambda: dependents.delete_team(team, lambda: teams.delete("vision", CLI, T0)),
            "expired": delete_expired,
        }
        self.store = store
        self.delete = deletions[deletion]
        self.link = lambda: artifacts.links.link(version.id, registry, "best", [], T0)

    def run(self, first: Callable[[], object], then: Callable[[], object]) -> Future[object]:
        """Begin the second change while the transaction of the first is open; return what became of it."""
        begun = threading.Event()

        def second() -> object:
            begun.set()
            return then()

        with ThreadPoolExecutor(1) as pool:

            def both() -> Future[object]:
                first()
                future = pool.submit(second)
                assert begun.wait(PATIENCE_S)
                threading.Event().wait(0.05)  # long enough for the other to come as far as it can
                return future

            return self.store.in_one_transaction(both)


@pytest.mark.parametrize("deletion", DELETIONS)
def test_what_is_being_deleted_is_not_linked(metadata_store: MetadataStore, deletion: str) -> None:
    race = Race(metadata_store, deletion)
    with pytest.raises((UnknownArtifact, ArtifactConflict)):
        race.run(race.delete, race.link).result()


@pytest.mark.parametrize("deletion", DELETIONS)
def test_what_is_being_linked_is_not_deleted(metadata_store: MetadataStore, deletion: str) -> None:
    race = Race(metadata_store, deletion)
    with pytest.raises(LinkedVersions):
        race.run(race.link, race.delete).result()
    assert race.store.artifacts.collections.named(race.store.projects.id("wandb-registry-model"), "best")
