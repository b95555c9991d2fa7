"""What MLflow's client does with registered models, from 2.8 on: run as a program, with a step and a name.

Prints one JSON object about what it saw.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import mlflow
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient


def register(name: str) -> dict[str, Any]:
    """Log a model and register it."""
    client = MlflowClient()
    mlflow.set_experiment("trainings")
    with mlflow.start_run() as active, tempfile.TemporaryDirectory() as folder:
        os.makedirs(f"{folder}/model/data")
        Path(folder, "model/MLmodel").write_text("flavors: {}")
        Path(folder, "model/data/weights.bin").write_text("weights of mlflow")
        mlflow.log_artifacts(f"{folder}/model", "model")
        uri, run_id = active.info.artifact_uri, active.info.run_id
    client.create_registered_model(name, {"task": "vision"}, "reads faces")
    version = client.create_model_version(name, f"{uri}/model", run_id, {"acc": "0.9"}, description="first")
    client.set_registered_model_alias(name, "champion", version.version)
    client.transition_model_version_stage(name, version.version, "Staging")
    return {"version": version.version, "run": run_id}


def read(name: str) -> dict[str, Any]:
    """What is in the model, and the files of its newest version."""
    client = MlflowClient()
    model = client.get_registered_model(name)
    versions = client.search_model_versions(f"name = '{name}'")
    newest = max(versions, key=lambda version: int(version.version))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(mlflow.artifacts.download_artifacts(f"models:/{name}/{newest.version}", dst_path=folder))
        files = {str(file.relative_to(path)): file.read_text() for file in path.rglob("*") if file.is_file()}
    return {
        "aliases": model.aliases,
        "tags": model.tags,
        "versions": sorted(int(version.version) for version in versions),
        "stages": {version.version: version.current_stage for version in versions},
        "files": {file: text for file, text in files.items() if file != "registered_model_meta"},
        "found": [each.name for each in client.search_registered_models(f"name LIKE '{name}%'")],
        "run": newest.run_id,
    }


def copy(name: str) -> dict[str, Any]:
    """Copy the first version to another model."""
    client = MlflowClient()
    copied = client.copy_model_version(f"models:/{name}/1", f"{name} copy")
    again = client.copy_model_version(f"models:/{name}/1", f"{name} copy")
    return {"copies": [copied.version, again.version], "source": copied.source}


def refused(name: str) -> dict[str, Any]:
    """What it may not do with a protected alias."""
    client = MlflowClient()
    errors = []
    for change in (
        lambda: client.set_registered_model_alias(name, "production", "2"),
        lambda: client.delete_registered_model(name),
    ):
        try:
            change()
        except MlflowException as error:
            errors.append(str(error))
    return {"errors": errors}


if __name__ == "__main__":
    steps = {"register": register, "read": read, "copy": copy, "refused": refused}
    print("RESULT " + json.dumps(steps[sys.argv[1]](sys.argv[2])))
