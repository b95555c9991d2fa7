"""Opens the kind of store that an MLflow URI names."""

from __future__ import annotations

import os
from collections.abc import Mapping

from runvitals.base.mlflow_tracking import URI_VARIABLE, absolute, public
from runvitals.readers.importers.mlflow.file_store import MlflowFileStore
from runvitals.readers.importers.mlflow.run import MlflowStore
from runvitals.readers.importers.mlflow.server_store import MlflowServerStore
from runvitals.readers.importers.mlflow.sqlite_store import MlflowSqliteStore

_SQLITE = "sqlite:///"


def store_of(uri: str, environ: Mapping[str, str], cwd: str, artifacts: str | None = None) -> MlflowStore:
    """Return the store that a tracking URI names: `sqlite:///FILE` or a file, `http://…`, or a folder.

    Args:
        uri: without a password; "" is the one in the environment.
        environ: MLflow's variables.
        cwd: the base of relative paths.
        artifacts: a folder on this machine that artifacts may be read from, besides those of the store.

    Raises:
        ValueError: no URI, one of a kind that cannot be imported, or not a store of MLflow.
        FileNotFoundError: there is no such file.
    """
    uri = uri or public(environ.get(URI_VARIABLE, ""))
    if not uri:
        raise ValueError(f"no store of MLflow; use mlflow:URI, or set {URI_VARIABLE}")
    full = absolute(uri, cwd)
    if full.startswith(("http://", "https://")):
        return MlflowServerStore(full, environ)
    path = full.removeprefix(_SQLITE).removeprefix("file://")
    if "://" in path:
        raise ValueError(
            f"cannot import from {full.partition('://')[0]}; start `mlflow server` with it, and import from "
            "that"
        )
    return MlflowFileStore(path, artifacts) if os.path.isdir(path) else MlflowSqliteStore(path, artifacts)
