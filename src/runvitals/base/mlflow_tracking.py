"""MLflow's tracking URIs, without and with their secrets, and our label of a run's windows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit

URI_VARIABLE = "MLFLOW_TRACKING_URI"
SAMPLES_LABEL = "mlflow_samples"
"""A label of the monitor: how many samples make a window."""
WEB = ("http", "https")


def public(uri: str) -> str:
    """Return a tracking URI without its secrets: no password, and for a database no query.

    >>> public("postgresql://me:secret@db/mlflow?sslpassword=x"), public("https://me:secret@host/mlflow/")
    ('postgresql://me@db/mlflow', 'https://host/mlflow')
    """
    parts = urlsplit(uri)
    if not parts.netloc or parts.scheme == "file":
        return uri.partition("?")[0] if parts.scheme not in ("", "file") else uri
    user, at, host = parts.netloc.rpartition("@")
    if parts.scheme in WEB:
        return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
    return urlunsplit((parts.scheme, f"{user.partition(':')[0]}{at}{host}", parts.path, "", ""))


def complete(uri: str, environ: Mapping[str, str]) -> str:
    """Return the URI with its secrets, if the environment has them."""
    configured = environ.get(URI_VARIABLE, "")
    return configured if configured and public(configured) == uri else uri


def absolute(uri: str, cwd: str) -> str:
    """Return a tracking URI that is independent of the working directory.

    >>> absolute("sqlite:///mlflow.db", "/home/me"), absolute("mlruns", "/home/me")
    ('sqlite:////home/me/mlflow.db', '/home/me/mlruns')
    """
    if uri.startswith("sqlite:///") and uri != "sqlite:///:memory:":
        path = uri.removeprefix("sqlite:///")
        return f"sqlite:///{os.path.join(cwd, path)}"
    if "://" in uri or uri in ("databricks", "databricks-uc", "uc"):
        return uri
    if uri.startswith("file:"):
        return f"file://{os.path.join(cwd, uri.removeprefix('file:'))}"
    return os.path.join(cwd, uri)
