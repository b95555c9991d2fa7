"""Uses artifacts with an unmodified wandb client, and prints what it saw, as JSON.

A program of its own: the client starts processes, and keeps what it has read for as long as it runs.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import wandb
from wandb.errors import CommError

ENTITY, PROJECT = "ada", "digits"


def files_of(folder: str) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text() for path in Path(folder).rglob("*") if path.is_file()
    }


def new_artifact(files: dict[str, str], **how: Any) -> wandb.Artifact:
    artifact = wandb.Artifact("mnist", type="dataset", **how)
    for name, text in files.items():
        with artifact.new_file(name, mode="w") as file:
            file.write(text)
    return artifact


def log_versions(far: str) -> dict[str, Any]:
    """Log a dataset four times, one of them the same again, one that adds to it, and one with references."""
    seen: dict[str, Any] = {}
    with wandb.init(entity=ENTITY, project=PROJECT, id="maker") as run:
        first = run.log_artifact(
            new_artifact({"a.txt": "one", "d/b.txt": "two"}, metadata={"rows": 2}, description="the first"),
            aliases=["best"],
        )
        first.wait()
        seen["first"] = [first.version, first.state, sorted(first.aliases), first.size, first.file_count]
        same = new_artifact({"a.txt": "one", "d/b.txt": "two"})
        again = run.log_artifact(same, tags=["reviewed"]).wait()
        seen["again"] = [again.version, again.tags]
        second = run.log_artifact(new_artifact({"a.txt": "changed", "d/b.txt": "two"})).wait()
        seen["second"] = [second.version, sorted(second.aliases)]
        draft = second.new_draft()
        with draft.new_file("c.txt", mode="w") as file:
            file.write("three")
        draft.remove("a.txt")
        third = run.log_artifact(draft).wait()
        seen["third"] = [third.version, sorted(third.manifest.entries)]
        part = new_artifact({"e.txt": "five"}, incremental=True)
        fourth = run.log_artifact(part).wait()
        seen["fourth"] = [fourth.version, sorted(fourth.manifest.entries)]
        outside = wandb.Artifact("outside", type="dataset")
        outside.add_reference(Path(far).as_uri(), name="far.txt")
        outside.add_reference("s3://bucket/key", name="bucket.bin", checksum=False)
        outside.add_reference(third.get_entry("c.txt"), name="of_mnist.txt")
        run.log_artifact(outside).wait()
    return seen


def use_versions(folder: str) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    with wandb.init(entity=ENTITY, project=PROJECT, id="user") as run:
        used = run.use_artifact("mnist:best")
        seen["best"] = files_of(used.download(f"{folder}/best"))
        seen["metadata"] = [used.metadata, used.description]
        seen["latest"] = files_of(run.use_artifact("mnist:latest").download(f"{folder}/latest"))
        outside = run.use_artifact("outside:latest")
        seen["references"] = {path: entry.ref for path, entry in outside.manifest.entries.items()}
        outside_folder = f"{folder}/outside"
        for name in ("far.txt", "of_mnist.txt"):
            outside.get_entry(name).download(outside_folder)
        seen["outside"] = files_of(outside_folder)
        # A single entry, by the address that redirects.
        seen["single"] = Path(used.get_entry("a.txt").download(f"{folder}/single")).read_text()
        seen["registry"] = link_to_registry(run, f"{folder}/registry")
        run.link_model(f"{folder}/single/a.txt", "best models", "net")
        seen["linked model"] = wandb.Api().artifact(f"{ENTITY}/model-registry/best models:latest").source_name
    return seen


def link_to_registry(run: wandb.Run, folder: str) -> list[Any]:
    """Link a new version to a collection of a registry, and read it from there."""
    new = wandb.Artifact("weights", type="model")
    with new.new_file("model.txt", mode="w") as file:
        file.write("weights")
    target = "wandb-registry-model/digits"
    linked = run.link_artifact(new, target, aliases=["production"])
    used = run.use_artifact(f"{target}:production")
    read = wandb.Api().artifact(f"{target}:v0")
    return [
        [linked.qualified_name, linked.is_link, used.qualified_name],
        [read.version, sorted(read.aliases), read.source_qualified_name],
        files_of(read.download(folder)),
    ]


def read_registries() -> dict[str, Any]:
    """Lists of registries, of their collections, and of versions in these."""
    api = wandb.Api()
    (registry,) = api.registries(filter={"name": {"$in": ["model", "other"]}})
    collection = api.artifact_collection("model", f"{ENTITY}/wandb-registry-model/digits")
    collection.tags = ["prod"]
    collection.save()
    return {
        "registry": [registry.name, registry.full_name, registry.entity, registry.organization],
        "shown": [registry.visibility, list(registry.artifact_types), registry.allow_all_artifact_types],
        "named": api.registry("model").created_at == registry.created_at,
        "others": [each.name for each in api.registries(filter={"name": {"$regex": "^other"}})],
        "collections": [[each.name, each.type, each.tags] for each in registry.collections()],
        "tagged": [each.name for each in api.registries(order="-name").collections(filter={"tag": "prod"})],
        "count": len(registry.collections(filter={"name": {"$ne": "digits"}})),
        "versions": [
            [each.qualified_name, sorted(each.aliases), each.source_name]
            for each in api.registries().versions(filter={"$or": [{"alias": "production"}, {"tag": "x"}]})
        ],
        "new ones": [each.name for each in registry.versions(filter={"created_at": {"$gt": "2100-01-01"}})],
        "of collections": [each.name for each in registry.collections().versions(filter={"version": "v0"})],
    }


def change_and_read() -> dict[str, Any]:
    api = wandb.Api()
    seen: dict[str, Any] = {}
    path = f"{ENTITY}/{PROJECT}"
    version = api.artifact(f"{path}/mnist:v0")
    version.aliases.append("kept")
    version.aliases.remove("best")
    version.metadata["acc"] = 0.5
    version.description = "changed"
    version.tags = ["tag one"]
    version.save()
    artifact = wandb.Api().artifact(f"{path}/mnist:kept")
    seen["changed"] = [
        artifact.version,
        sorted(artifact.aliases),
        artifact.metadata,
        artifact.description,
        artifact.tags,
    ]
    seen["types"] = [each.name for each in api.artifact_types(path)]
    seen["collections"] = [each.name for each in api.artifact_type("dataset", path).collections()]
    kind = api.artifact_type("dataset", path)
    some = {"name": {"$regex": "^out"}, "createdAt": {"$gt": "2020-01-01"}}
    seen["some collections"] = [
        [each.name for each in kind.collections(order="-name")],
        [each.name for each in kind.collections(filters=some, order="-createdAt")],
        len(api.project(PROJECT, ENTITY).collections(filters=some)),
    ]
    seen["versions"] = [each.version for each in api.artifacts("dataset", f"{path}/mnist")]
    seen["exists"] = [api.artifact_exists(f"{path}/mnist:v0"), api.artifact_exists(f"{path}/none:v0")]
    seen["files"] = [[file.name, file.size] for file in artifact.files()]
    maker = artifact.logged_by()
    seen["made_by"] = None if maker is None else maker.id
    seen["used_by"] = [run.id for run in artifact.used_by()]
    seen["logged"] = [each.name for each in api.run(f"{path}/maker").logged_artifacts()]
    seen["used"] = [each.name for each in api.run(f"{path}/user").used_artifacts()]
    linked = artifact.link(f"{path}/best datasets", aliases=["gold"])
    seen["linked"] = [linked.name, sorted(linked.aliases), linked.source_name, linked.is_link]
    seen["registries"] = read_registries()
    seen["errors"] = errors_of(api, path)
    collection = api.artifact_collection("dataset", f"{path}/mnist")
    collection.description = "digits, written by hand"
    collection.tags = ["shown"]
    collection.save()
    read = api.artifact_collection("dataset", f"{path}/mnist")
    seen["collection"] = [read.description, read.tags, sorted(read.aliases)]
    latest = api.artifact(f"{path}/mnist:latest")
    latest.delete(delete_aliases=True)
    seen["after_delete"] = wandb.Api().artifact(f"{path}/mnist:latest").version
    api.artifact_collection("dataset", f"{path}/outside").delete()
    seen["left"] = [each.name for each in api.artifact_type("dataset", path).collections()]
    return seen


def errors_of(api: wandb.Api, path: str) -> list[str]:
    """Return what the client says about what it may not do."""
    texts = []
    version = api.artifact(f"{path}/mnist:v0")
    for wrong in (
        lambda: version.delete(),
        lambda: api.artifact(f"{path}/mnist:v99"),
        lambda: api.artifact(f"{path}/none:latest"),
    ):
        try:
            wrong()
        except (CommError, ValueError) as error:
            texts.append(str(error))
    return texts


if __name__ == "__main__":
    where = sys.argv[1]
    Path(where, "far.txt").write_text("far away")
    result = {"log": log_versions(os.path.join(where, "far.txt")), "use": use_versions(where)}
    print("RESULT " + json.dumps({**result, "read": change_and_read()}))
