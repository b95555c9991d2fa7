"""Ids in GraphQL count upwards: what is another team's looks as if there were nothing with its id."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import pytest
from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLInputType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    get_named_type,
    is_leaf_type,
)

from runvitals.server.artifacts.storage.protection import Changer
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.doors.wandb.context import node_id
from runvitals.server.doors.wandb.schema import wandb_schema
from runvitals.server.projects.storage.projects import ProjectOwner
from tests.server.access.organisation import NOW, TEAM, ServedOrganisation, served_organisation
from tests.server.access.specified_calls import _new_sweep
from tests.server.database.artifacts.making import logged

NOTHING: Final = 9_000


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServedOrganisation, dict[str, int]]]:
    """An organisation, and the number of something of its team `vision` by the kind of an id."""
    with served_organisation(tmp_path_factory.mktemp("ids")) as served:
        store = served.metadata_store
        project_id, team_id = store.projects.id("team"), served.accounts.teams.by_name(TEAM).id
        version = logged(store, project_id, {"a": b"a"})
        owner = ProjectOwner(team_id, served.users["alice"], "team")
        registry = store.registries.create(owner, "secret", "", NOW, Changer(CLI), [])
        linked = store.artifacts.links.link(version.id, registry.id, "c", (), NOW, Changer(CLI))
        sweep = store.sweeps.sweeps.named(project_id, _new_sweep(served)["sweep"])
        run = store.runs.find("team-bob", NOW)
        assert sweep is not None
        assert run is not None
        agent = store.sweeps.agents.add(sweep.id, "node1", NOW)
        served.add_report("team", "bob")
        yield (
            served,
            {
                "Agent": agent.id,
                "Artifact": version.id,
                "ArtifactManifest": version.id,
                "ArtifactPortfolio": linked.collection.id,
                "ArtifactSequence": version.collection.id,
                "Project": registry.id,
                "Run": run.id,
                "Sweep": sweep.id,
                "View": served.reports["team-bob"],
            },
        )


def literal(kind: GraphQLInputType, id: str) -> str:
    """A value for an argument, with this id wherever it takes one."""
    if isinstance(kind, GraphQLNonNull):
        return literal(kind.of_type, id)
    if isinstance(kind, GraphQLList):
        return f"[{literal(kind.of_type, id)}]"
    if isinstance(kind, GraphQLInputObjectType):
        given = {name: field.type for name, field in kind.fields.items() if needed(field.type)}
        return "{" + " ".join(f"{name}: {literal(type_, id)}" for name, type_ in given.items()) + "}"
    if isinstance(kind, GraphQLEnumType):
        return next(iter(kind.values))
    return {"ID": json.dumps(id), "Boolean": "true", "Int": "1", "Float": "1.5"}.get(kind.name, '"x"')


def needed(kind: GraphQLInputType) -> bool:
    return isinstance(kind, GraphQLNonNull) or get_named_type(kind).name == "ID"


def operations(root: GraphQLObjectType, id: str) -> str:
    """All fields of a root that take an id, in one request."""
    calls = []
    for name, field in root.fields.items():
        given = {key: literal(argument.type, id) for key, argument in field.args.items()}
        if json.dumps(id) in str(given.values()):
            told = ", ".join(f"{key}: {value}" for key, value in given.items())
            leaf = is_leaf_type(get_named_type(field.type))
            calls.append(f"{name}({told})" + ("" if leaf else "{ __typename }"))
    assert len(calls) >= 4
    return f"{root.name.lower()} {{ {' '.join(calls)} }}"


def test_nothing_is_told_about_what_is_hidden(
    numbers: tuple[ServedOrganisation, dict[str, int]],
) -> None:
    served, of_kind = numbers
    schema = wandb_schema()
    for kind, number in of_kind.items():
        for root in (schema.query_type, schema.mutation_type):
            assert root is not None
            answers = []
            for asked in (number, NOTHING):
                id = node_id(kind, asked)
                response = served.ask("otto", "POST", "/graphql", json={"query": operations(root, id)})
                text = response.text.replace(id, "ID").replace(node_id("Artifact", asked), "ID")
                answer = json.loads(text)
                # Fields of a query are answered at the same time, so errors come in any order.
                answers.append((answer["data"], sorted(answer["errors"], key=json.dumps)))
            hidden, absent = answers
            assert hidden == absent, kind
