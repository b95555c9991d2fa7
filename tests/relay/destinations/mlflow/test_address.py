"""Addresses of MLflow destinations."""

from __future__ import annotations

import pytest

from runvitals.base.mlflow_tracking import absolute, complete, public
from runvitals.relay.destinations.mlflow.address import MlflowAddress


@pytest.mark.parametrize(
    ("text", "uri"),
    [
        ("http://host:5000", "http://host:5000"),
        ("//host:5000", "http://host:5000"),
        ("sqlite:///mlflow.db", "sqlite:////srv/me/mlflow.db"),
        ("sqlite:////data/mlflow.db", "sqlite:////data/mlflow.db"),
        ("mlruns", "/srv/me/mlruns"),
        ("file:///data/mlruns", "file:///data/mlruns"),
        ("databricks", "databricks"),
        ("databricks://profile", "databricks://profile"),
        ("postgresql://me@db/mlflow", "postgresql://me@db/mlflow"),
    ],
)
def test_tracking_uri_is_made_absolute(text: str, uri: str) -> None:
    assert MlflowAddress.parse(text, {}, "/srv/me").uri == uri
    assert absolute(uri, "/elsewhere") == uri


def test_defaults_from_the_environment() -> None:
    environ = {
        "MLFLOW_TRACKING_URI": "https://me:secret@host/mlflow",
        "MLFLOW_EXPERIMENT_NAME": "digits",
        "MLFLOW_SYSTEM_METRICS_NODE_ID": "n0",
    }
    assert MlflowAddress.parse("", environ, "/") == MlflowAddress("https://host/mlflow", "", "digits", "n0")
    address = MlflowAddress.parse("http://other#experiment=a%20b&node=n1&run=0f", environ, "/")
    assert address == MlflowAddress("http://other", "0f", "a b", "n1")


@pytest.mark.parametrize(
    ("text", "why"),
    [("", "MLFLOW_TRACKING_URI"), ("http://host#rum=1", "unknown option rum; expected one of experiment")],
)
def test_invalid_addresses_are_rejected(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        MlflowAddress.parse(text, {}, "/")


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("https://me:secret@host:5000/mlflow/", "https://host:5000/mlflow"),
        ("postgresql://me:secret@db:5432/mlflow?sslmode=require", "postgresql://me@db:5432/mlflow"),
        ("mssql+pyodbc:///?odbc_connect=PWD%3Dsecret", "mssql+pyodbc:///"),
        ("sqlite:////data/mlflow.db", "sqlite:////data/mlflow.db"),
        ("/data/what?is#this", "/data/what?is#this"),
        ("databricks", "databricks"),
    ],
)
def test_passwords_are_removed_and_restored_from_the_environment(uri: str, shown: str) -> None:
    assert public(uri) == shown
    assert complete(shown, {"MLFLOW_TRACKING_URI": uri}) == uri
    assert complete(shown, {"MLFLOW_TRACKING_URI": "https://me:secret@another"}) == shown
