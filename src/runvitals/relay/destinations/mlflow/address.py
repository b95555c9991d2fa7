"""The address of an MLflow destination: a tracking URI, a run, an experiment, a node.

`mlflow` (the tracking URI of the environment), `mlflow:http://host:5000`, `mlflow:sqlite:////data/mlflow.db`,
`mlflow:databricks`, each optionally followed by `#run=…&experiment=…&node=…`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from runvitals.relay.engine.credentials import credentials_are_for

URI_VARIABLE = "MLFLOW_TRACKING_URI"
NODE_VARIABLE = "MLFLOW_SYSTEM_METRICS_NODE_ID"
# A label of the monitor: how many samples make a window.
SAMPLES_LABEL = "mlflow_samples"
EXPERIMENT_VARIABLE = "MLFLOW_EXPERIMENT_NAME"
_OPTIONS = ("experiment", "node", "run")
_WEB = ("http", "https")


class MlflowAddress(NamedTuple):
    """A parsed address.

    Attributes:
        uri: the tracking URI, absolute if it is a path; without a password.
        run: id of the MLflow run to write to; "": a new one is created.
        experiment: name of the experiment for a new run; "": the run's project.
        node: MLflow's node id, "" if there is none.
    """

    uri: str
    run: str = ""
    experiment: str = ""
    node: str = ""

    @property
    def is_web(self) -> bool:
        return urlsplit(self.uri).scheme in _WEB

    @classmethod
    def parse(cls, text: str, environ: Mapping[str, str], cwd: str) -> MlflowAddress:
        """Parse the text after `mlflow:`.

        Args:
            environ: has the tracking URI, the experiment and the node if the text does not.
            cwd: the base of relative paths.

        Raises:
            ValueError: unknown option, or no tracking URI.

        Example:
            >>> MlflowAddress.parse("http://host:5000#run=0123abcd", {}, "/")
            MlflowAddress(uri='http://host:5000', run='0123abcd', experiment='', node='')
        """
        uri, _, fragment = text.partition("#")
        given = dict(parse_qsl(fragment, keep_blank_values=True))
        unknown = ", ".join(sorted(given.keys() - set(_OPTIONS)))
        if unknown:
            raise ValueError(f"mlflow: unknown option {unknown}; expected one of {', '.join(_OPTIONS)}")
        uri = uri or public(environ.get(URI_VARIABLE, ""))
        if not uri:
            raise ValueError(
                f"no MLflow tracking server set; use mlflow:http://host:5000 or set {URI_VARIABLE}"
            )
        return cls(
            absolute(f"http:{uri}" if uri.startswith("//") else uri, cwd),
            given.get("run", ""),
            given.get("experiment") or environ.get(EXPERIMENT_VARIABLE, ""),
            given.get("node") or environ.get(NODE_VARIABLE, ""),
        )


def public(uri: str) -> str:
    """A tracking URI without its secrets: no password, and for a database no query.

    >>> public("postgresql://me:secret@db/mlflow?sslpassword=x"), public("https://me:secret@host/mlflow/")
    ('postgresql://me@db/mlflow', 'https://host/mlflow')
    """
    parts = urlsplit(uri)
    if not parts.netloc or parts.scheme == "file":
        return uri.partition("?")[0] if parts.scheme not in ("", "file") else uri
    user, at, host = parts.netloc.rpartition("@")
    if parts.scheme in _WEB:
        return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
    return urlunsplit((parts.scheme, f"{user.partition(':')[0]}{at}{host}", parts.path, "", ""))


def complete(uri: str, environ: Mapping[str, str]) -> str:
    """The URI with its secrets, if the environment has them."""
    known = environ.get(URI_VARIABLE, "")
    return known if known and public(known) == uri else uri


def is_trusted(uri: str, environ: Mapping[str, str]) -> bool:
    """Whether the environment's credentials belong to this server: if the environment names a server, they
    belong to that one, else to the only one among the run's destinations.

    >>> is_trusted("http://evil", {"MLFLOW_TRACKING_URI": "https://host", "MLFLOW_TRACKING_TOKEN": "t"})
    False
    """
    known = environ.get(URI_VARIABLE, "")
    return public(known) == public(uri) if known else credentials_are_for(uri, "mlflow", environ)


def absolute(uri: str, cwd: str) -> str:
    """A tracking URI that is independent of the working directory.

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
