"""Models that MLflow's clients registered before there were collections of registries: they are those now."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import text

from runvitals.server.artifacts.storage.protection import NOBODY
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.database.database import Database
from runvitals.server.database.migration import downgrade, migrate
from runvitals.server.metadata_store import MetadataStore, open_metadata_store
from runvitals.server.projects.storage.projects import ProjectOwner
from runvitals.server.registry.storage.model_versions import NewModelVersion
from runvitals.server.runs.storage.writer_registration import Sender
from tests.server.database.artifacts.making import T0, logged
from tests.server.database.conftest import NewAddress
from tests.server.database.runs import joined

_RUN = "4f5e"
_SOURCE = f"mlflow-artifacts:/1/{_RUN}/artifacts/model"
_NEW = NewModelVersion("s3://bucket/new", "s3://bucket/new", "", {}, {})


@pytest.fixture
def address(empty: NewAddress) -> str:
    return empty()


def add(database: Database, table: str, **values: Any) -> None:
    names = ", ".join(values)
    statement = text(f"INSERT INTO {table} ({names}) VALUES ({', '.join(f':{name}' for name in values)})")
    database.write(lambda connection: connection.execute(statement, values))


@pytest.fixture
def upgraded(address: str) -> Iterator[MetadataStore]:
    """Before: models as MLflow's clients made them, and a version that `run.link_model()` linked."""
    with open_metadata_store(address) as store:
        team = store.accounts.teams.create("vision", CLI, T0).id
        project = store.projects.ensure("trainings", ProjectOwner(team), T0)
        joined(store, _RUN, project="trainings", sender=Sender(team))
        linked = logged(store, project, {"a": b"1"}, "weights", type="model")
        registry = store.projects.ensure("model-registry", ProjectOwner(team), T0)
        store.artifacts.links.link(linked.id, registry, "speech", [], T0)
    database = Database(address)
    downgrade(database, "0047")
    for entity_id, name, aliases, last in (
        (team, "faces", '{"champion": 1, "challenger": 3}', 3),
        (team, "speech", "{}", 0),
        (None, "faces", '{"old": 1}', 1),
    ):
        tags = '{"task": "vision"}'
        values = {"entity_id": entity_id, "name": name, "description": None, "tags": tags, "aliases": aliases}
        add(database, "registered_model", **values, last_version=last, created_ms=T0, changed_ms=T0 + 1)
    common = {"source": _SOURCE, "location": _SOURCE, "run_uid": _RUN, "run_link": None, "logged_model": None}
    for model_id, number, stage in ((1, 1, "Production"), (1, 3, "None"), (3, 1, "Archived")):
        say = {"description": f"number {number}", "stage": stage, "tags": f'{{"acc": "0.{number}"}}'}
        own = {"model_id": model_id, "version": number, "created_ms": T0, "changed_ms": T0 + number}
        add(database, "model_version", **common, **say, **own)
    migrate(database)
    database.close()
    with open_metadata_store(address) as store:
        yield store


def test_models_keep_their_numbers_aliases_stages_tags_and_runs(upgraded: MetadataStore) -> None:
    mine, nobodys = sorted(
        upgraded.registered_models.named("faces"), key=lambda model: model.entity_id is None
    )
    assert (mine.aliases, mine.tags) == ({"challenger": 3, "champion": 1}, {"task": "vision"})
    assert (mine.created_ms, mine.changed_ms, nobodys.aliases) == (T0, T0 + 1, {"old": 1})
    first, third = upgraded.model_versions.of_collection(mine.id)
    assert (first.version, first.stage, first.tags, first.run_uid) == (1, "Production", {"acc": "0.1"}, _RUN)
    assert (third.version, third.description, third.changed_ms) == (3, "number 3", T0 + 3)
    assert (first.source, first.location) == (_SOURCE, _SOURCE)
    latest = upgraded.artifacts.collections.member_of(mine.id, "latest")
    assert latest is not None
    assert (latest.number, latest.version.run_id is not None) == (3, True)
    added = upgraded.model_versions.register(mine.id, _NEW, T0 + 9, NOBODY)
    assert (added.version, added.tags) == (4, {})  # the number of a deleted version is not used again


def test_our_page_lists_them_beside_what_was_linked(upgraded: MetadataStore) -> None:
    """`run.link_model()` linked to a project of another name, which is the registry `model` now."""
    team = upgraded.accounts.teams.by_name("vision").id
    registry = upgraded.registries.named(team, "model")
    assert registry is not None
    rows, total = upgraded.registry_collections.page(registry.id, "", "name", 0, 10)
    listed = [(row.collection.name, row.newest, row.aliases) for row in rows]
    assert total == 3
    assert listed == [
        ("faces", 3, {"challenger": 3, "champion": 1, "latest": 3}),
        ("speech", 0, {"latest": 0}),
        ("speech of MLflow", None, {}),
    ]
    (empty,) = upgraded.registered_models.named("speech of MLflow")
    assert (empty.tags, upgraded.model_versions.of_collection(empty.id)) == ({"task": "vision"}, [])
