"""The address of an MLflow destination: a tracking URI, a run, an experiment, a node.

`mlflow` (the tracking URI of the environment), `mlflow:http://host:5000`, `mlflow:sqlite:////data/mlflow.db`,
`mlflow:databricks`, each optionally followed by `#run=…&experiment=…&node=…`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from runvitals.base.mlflow_tracking import URI_VARIABLE, WEB, absolute, public
from runvitals.relay.engine.credentials import credentials_are_for

NODE_VARIABLE = "MLFLOW_SYSTEM_METRICS_NODE_ID"
EXPERIMENT_VARIABLE = "MLFLOW_EXPERIMENT_NAME"
_OPTIONS = ("experiment", "node", "run")


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
        """Whether the tracking store is a server."""
        return urlsplit(self.uri).scheme in WEB

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
        options = dict(parse_qsl(fragment, keep_blank_values=True))
        unknown = ", ".join(sorted(options.keys() - set(_OPTIONS)))
        if unknown:
            raise ValueError(f"mlflow: unknown option {unknown}; expected one of {', '.join(_OPTIONS)}")
        uri = uri or public(environ.get(URI_VARIABLE, ""))
        if not uri:
            raise ValueError(
                f"no MLflow tracking server set; use mlflow:http://host:5000 or set {URI_VARIABLE}"
            )
        return cls(
            absolute(f"http:{uri}" if uri.startswith("//") else uri, cwd),
            options.get("run", ""),
            options.get("experiment") or environ.get(EXPERIMENT_VARIABLE, ""),
            options.get("node") or environ.get(NODE_VARIABLE, ""),
        )


def is_trusted(uri: str, environ: Mapping[str, str]) -> bool:
    """Return whether the environment's credentials belong to this server.

    If the environment names a server, they belong to that one, else to the only one among the run's
    destinations.

    >>> is_trusted("http://evil", {"MLFLOW_TRACKING_URI": "https://host", "MLFLOW_TRACKING_TOKEN": "t"})
    False
    """
    configured = environ.get(URI_VARIABLE, "")
    return public(configured) == public(uri) if configured else credentials_are_for(uri, "mlflow", environ)
