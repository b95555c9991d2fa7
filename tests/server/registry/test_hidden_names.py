"""GraphQL neither shows nor changes a registry of the organisation that the requester may not read."""

from __future__ import annotations

import json

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

from runvitals.server.doors.wandb.schema import wandb_schema
from tests.server.registry.conftest import Registries

SECRET = "wandb-registry-hidden"
ABSENT = "wandb-registry-absent"
_OF_TEAMS = ("entity", "organization")
_OF_PROJECTS = ("project", "model")


def literal(kind: GraphQLInputType, name: str, project: str) -> str:
    """A value for an argument: names of projects and teams where it takes one."""
    if isinstance(kind, GraphQLNonNull):
        return literal(kind.of_type, name, project)
    if isinstance(kind, GraphQLList):
        return f"[{literal(kind.of_type, name, project)}]"
    if isinstance(kind, GraphQLInputObjectType):
        fields = {key: field.type for key, field in kind.fields.items() if wanted(key, field.type)}
        return "{" + " ".join(f"{key}: {literal(type_, key, project)}" for key, type_ in fields.items()) + "}"
    if isinstance(kind, GraphQLEnumType):
        return next(iter(kind.values))
    if kind.name == "String":
        if any(word in name.lower() for word in _OF_TEAMS):
            return '"organisation"'
        return json.dumps(project if any(word in name.lower() for word in _OF_PROJECTS) else "faces")
    return {"ID": '"UnVuOjk="', "Boolean": "true", "Int": "1", "Float": "1.5"}.get(kind.name, '"{}"')


def wanted(name: str, kind: GraphQLInputType) -> bool:
    return isinstance(kind, GraphQLNonNull) or any(word in name.lower() for word in _OF_TEAMS + _OF_PROJECTS)


def operations(root: GraphQLObjectType, project: str) -> list[str]:
    """One request for each field of a root that takes the name of a project."""
    calls = []
    for name, field in root.fields.items():
        arguments = {}
        for key, argument in field.args.items():
            if wanted(key, argument.type) or key == "name":
                called = "project" if key == "name" and name in ("project", "model") else key
                arguments[key] = literal(argument.type, called, project)
        told = ", ".join(f"{key}: {value}" for key, value in arguments.items())
        if project in told:
            leaf = is_leaf_type(get_named_type(field.type))
            calls.append(f"{root.name.lower()} {{ {name}({told}){'' if leaf else '{ __typename }'} }}")
    assert len(calls) >= 2
    return calls


def test_a_hidden_registry_looks_like_none(registries: Registries) -> None:
    ask = registries.served.ask
    path = "/api/v1/teams/organisation/registries"
    made = ask("rita", "POST", path, json={"name": "hidden", "visibility": "restricted"})
    assert made.status_code == 201, made.text
    schema = wandb_schema()
    for root in (schema.query_type, schema.mutation_type):
        assert root is not None
        for hidden, absent in zip(operations(root, SECRET), operations(root, ABSENT), strict=True):
            for who in ("ci", "carol"):
                texts = [
                    ask(who, "POST", "/graphql", json={"query": query}).text.replace(name, "NAME")
                    for query, name in ((hidden, "hidden"), (absent, "absent"))
                ]
                assert texts[0] == texts[1], hidden
    left = ask("rita", "GET", f"{path}/hidden").json()
    assert (left["name"], left["collections"]) == ("hidden", 0)
