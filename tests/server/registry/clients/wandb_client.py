"""What wandb's client does with registries, from 0.16 on: run as a program, with a step and a name.

Prints one JSON object about what it saw.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import wandb

TEAM = "vision"
REGISTRY = "wandb-registry-model"


def link(name: str) -> dict[str, Any]:
    """Log a version and link it."""
    run = wandb.init(entity=TEAM, project="trainings", id=f"wandb-{name}")
    artifact = wandb.Artifact(f"weights-{name}", "model", metadata={"rows": 2})
    with artifact.new_file("weights.bin") as file:
        file.write(f"weights of wandb {name}")
    logged = run.log_artifact(artifact)
    logged.wait()
    target = f"{TEAM}/{REGISTRY}/{name}"
    run.link_artifact(logged, target, aliases=["better"])
    run.link_artifact(logged, f"model-registry/{name}", aliases=["as before"])
    shared = f"organisation/wandb-registry-shared/{name}"
    run.link_artifact(logged, shared, aliases=["for all"])
    own = f"{TEAM}/trainings/picked {name}"
    for path, alias in ((f"picked {name}", "a"), (f"trainings/picked {name}", "b"), (own, "c")):
        run.link_artifact(logged, path, aliases=[alias])
    run.finish()
    api = wandb.Api()
    assert {"a", "b", "c"} <= set(api.artifact(f"{own}:v0").aliases)
    linked = api.artifact(f"{target}:better")
    assert api.artifact(f"{TEAM}/model-registry/{name}:as before").version == linked.version
    assert api.artifact(f"{shared}:for all").version == "v0"
    return {"version": linked.version, "aliases": sorted(linked.aliases)}


def read(name: str) -> dict[str, Any]:
    """The files of a version with an alias. `name`: in the registry of the team, or with another's path."""
    artifact = wandb.Api().artifact(name if "/" in name else f"{TEAM}/{REGISTRY}/{name}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(artifact.download(folder))
        files = {str(file.relative_to(path)): file.read_text() for file in path.rglob("*") if file.is_file()}
    return {"version": artifact.version, "type": artifact.type, "files": files}


def browse(name: str) -> dict[str, Any]:
    """The registries with their collections, as newer clients list them."""
    api = wandb.Api()
    (registry,) = api.registries(organization=TEAM, filter={"name": "model"})
    collections = registry.collections(filter={"name": name})
    linked = registry.collections(filter={"name": name})
    orders = ["created_at", "-created_at", "artifact_size", "-linked_at"]
    return {
        "sorted": [[int(each.version[1:]) for each in linked.versions(order=order)] for order in orders],
        "filtered": [
            len(list(linked.versions(filter=condition)))
            for condition in (
                {"artifact_size": {"$gt": 0}},
                {"linked_at": {"$lt": "2001-01-01"}},
                {"metadata.rows": 2},
                {"alias": "better"},
                {"version": 1},
                {"created_at": {"$gt": "2001-01-01"}},
            )
        ],
        "collections": [each.name for each in collections],
        "versions": sorted(each.name for each in registry.collections(filter={"name": name}).versions()),
    }


def manage(name: str) -> dict[str, Any]:
    """Create a registry of the organisation, change it, give users roles, and delete it.

    Args:
        name: ids of two users as the client sees them, with a space between.
    """
    member, admin = name.split()
    api = wandb.Api()
    registry = api.create_registry(
        name="fresh", visibility="restricted", organization="organisation", artifact_types=["model"]
    )
    registry.add_members(member, admin)
    registry.update_member(member, "member")
    registry.update_member(admin, "admin")
    roles = {each.user.username: each.role for each in registry.user_members()}
    team = api.team(TEAM)
    registry.add_members(team)
    teams = [(each.team.name, each.role) for each in registry.team_members()]
    registry.update_member(team, "admin")
    teams += [(each.team.name, each.role) for each in registry.team_members()]
    registry.remove_members(team)
    teams += [(each.team.name, each.role) for each in registry.team_members()]
    registry.description = "described"
    registry.artifact_types.append("dataset")
    registry.visibility = "organization"
    registry.name = "renamed"
    registry.save()
    found = api.registry("renamed", "organisation")
    seen = [found.description, sorted(found.artifact_types), found.visibility, found.entity]
    changed = {"updated_at": {"$gte": found.updated_at}}
    later = [(each.updated_at, each.name) for each in api.registries("organisation", changed, "updated_at")]
    seen += [later == sorted(later), ("renamed" in [name for _, name in later])]
    registry.remove_members(admin)
    left = [each.user.username for each in registry.members()]
    try:
        api.create_registry(name="renamed", visibility="organization", organization="organisation")
        again = "created"
    except ValueError as error:
        again = str(error)
    names = [each.name for each in api.registries(organization="organisation")]
    found.delete()
    names += [each.name for each in api.registries(organization="organisation")]
    return {"roles": roles, "teams": teams, "seen": seen, "left": left, "again": again, "names": names}


def automate(name: str) -> dict[str, Any]:
    """Create, list, change and delete an automation about a collection of a registry of the organisation.

    Args:
        name: of the registry.
    """
    from wandb.automations import ArtifactEvent, OnAddArtifactAlias, OnLinkArtifact, SendWebhook

    api = wandb.Api()
    (collection,) = api.registries(organization="organisation", filter={"name": name}).collections()
    (webhook,) = api.webhook_integrations(entity="organisation")
    call = SendWebhook.from_integration(webhook, payload={"text": "${alias}"})
    linked = api.create_automation(OnLinkArtifact(scope=collection) >> call, name="linked")
    alias = OnAddArtifactAlias(scope=collection, filter=ArtifactEvent.alias.eq("gold"))
    api.create_automation(alias >> call, name="gold")
    listed = [[one.name, one.scope.name] for one in api.automations(entity="organisation")]
    mine = sorted(one.name for one in api.automations())
    changed = api.update_automation(linked, enabled=False).enabled
    api.delete_automation(linked)
    left = [one.name for one in api.automations(entity="organisation")]
    return {"listed": listed, "mine": mine, "changed": changed, "left": left, "url": webhook.url_endpoint}


def refused(name: str) -> dict[str, Any]:
    """What it may not do with a protected alias."""
    artifact = wandb.Api().artifact(f"{TEAM}/{REGISTRY}/{name}:better")
    errors = []
    try:
        artifact.aliases.append("production")
        artifact.save()
    except (wandb.errors.CommError, wandb.errors.UsageError, ValueError) as error:
        errors.append(str(error))
    return {"errors": errors}


if __name__ == "__main__":
    steps = {"link": link, "read": read, "browse": browse, "manage": manage, "automate": automate}
    steps["refused"] = refused
    print("RESULT " + json.dumps(steps[sys.argv[1]](sys.argv[2])))
