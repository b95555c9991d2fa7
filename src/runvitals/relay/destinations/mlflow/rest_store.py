"""A client of MLflow's REST API, version 2.0. Importing MLflow instead would cost 190 MB and 1.5 s."""

from __future__ import annotations

import configparser
import os
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

from runvitals.base.http_client import TIMEOUT_S, HttpClient, ServerResponse
from runvitals.base.json_codec import dumps, loads
from runvitals.base.mlflow_tracking import complete
from runvitals.base.numbers import parse_number
from runvitals.relay.destination import Gone, Rejected, Retry
from runvitals.relay.destinations.mlflow.address import is_trusted
from runvitals.relay.destinations.mlflow.tracking_store import (
    MetricPoint,
    NamedText,
    RunState,
    last_system_step,
)

_API = "/api/2.0/mlflow"
_WORKSPACE_HEADER = "X-MLFLOW-WORKSPACE"
_TIMEOUT_VARIABLE = "MLFLOW_HTTP_REQUEST_TIMEOUT"
_MISSING = "RESOURCE_DOES_NOT_EXIST"
_EXISTS = "RESOURCE_ALREADY_EXISTS"
# Runs that have just ended are still requested: the largest response has all their parameters.
_MAX_TIMEOUT_S = 3600.0
_MAX_RESPONSE_BYTES = 256 * 1024 * 1024


class _MlflowError(Exception):
    """An error response of MLflow, with its error code."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class RestStore:
    """A tracking server accessed over REST.

    Args:
        uri: `http://host[:port][/path]` or https.
        environ: MLflow's variables for credentials and TLS. Read for every request, so they may change.

    Raises:
        ValueError: invalid URI, or an invalid number in a variable.
        OSError: a certificate file could not be read.

    Example:
        >>> store = RestStore("http://127.0.0.1:5000", os.environ)
        >>> store.log(run, [MetricPoint("loss", 0.5, 1700000000000, 3)])
    """

    def __init__(self, uri: str, environ: Mapping[str, str]) -> None:
        self._uri = uri
        self._environ = environ
        timeout = environ.get(_TIMEOUT_VARIABLE, "")
        timeout_s = parse_number(timeout, 0.001, _MAX_TIMEOUT_S) if timeout else TIMEOUT_S
        if timeout_s is None:
            raise ValueError(
                f"mlflow: invalid {_TIMEOUT_VARIABLE}={timeout!r:.80}; expected seconds to {_MAX_TIMEOUT_S:g}"
            )
        self._http = HttpClient(
            uri, timeout_s, _MAX_RESPONSE_BYTES, tls(environ) if uri.startswith("https:") else None
        )

    # -- the interface of `TrackingStore`

    def experiment(self, name: str) -> str:
        """Return the id of the experiment with a name, which is created if it does not exist."""
        experiment = self._find_experiment(name)
        if experiment:
            return experiment
        try:
            return str(self._post("experiments/create", {"name": name})["experiment_id"])
        except _MlflowError as error:
            experiment = self._find_experiment(name) if error.code == _EXISTS else ""
            if not experiment:  # it was deleted: the name is taken, and nothing can be written to it
                raise Rejected(str(error)) from None
            return experiment

    def _find_experiment(self, name: str) -> str:
        try:
            response = self._get("experiments/get-by-name", {"experiment_name": name})
        except _MlflowError as error:
            if error.code == _MISSING:
                return ""
            raise Rejected(str(error)) from None
        experiment = response["experiment"]
        return str(experiment["experiment_id"]) if experiment.get("lifecycle_stage") != "deleted" else ""

    def runs_with(self, experiment: str, tag: NamedText) -> list[str]:
        """Return the ids of at most 10 runs with a tag, the oldest first."""
        query = {
            "experiment_ids": [experiment],
            "filter": f"tags.`{tag.key}` = '{tag.value}'",
            "max_results": 10,
            "order_by": ["attributes.start_time ASC", "attributes.run_id ASC"],
        }
        runs = self._post_checked("runs/search", query).get("runs", ())
        return [str(run["info"]["run_id"]) for run in runs]

    def make_run(self, experiment: str, name: str, start_ms: int, tags: Sequence[NamedText]) -> str:
        """Create a run and return its id."""
        fields = {
            "experiment_id": experiment,
            "run_name": name,
            "start_time": start_ms,
            "tags": [pair._asdict() for pair in tags],
        }
        return str(self._post_checked("runs/create", fields)["run"]["info"]["run_id"])

    def drop_run(self, run: str) -> None:
        """Delete a run; it can be restored in MLflow."""
        self._post_checked("runs/delete", {"run_id": run})

    def state(self, run: str) -> RunState:
        """Return the status of a run and the last step of its system metrics."""
        try:
            run_info = self._get("runs/get", {"run_id": run})["run"]
        except _MlflowError as error:
            raise _run_error(error) from None
        steps = [
            (metric["key"], int(metric.get("step", 0)))
            for metric in run_info.get("data", {}).get("metrics", ())
        ]
        return RunState(str(run_info["info"].get("status", "")), last_system_step(steps))

    def log(
        self,
        run: str,
        metrics: Sequence[MetricPoint] = (),
        params: Sequence[NamedText] = (),
        tags: Sequence[NamedText] = (),
    ) -> None:
        """Log metrics, parameters and tags of a run in one request."""
        batch: dict[str, Any] = {"run_id": run}
        if metrics:
            batch["metrics"] = [
                {
                    "key": metric.key,
                    "value": number(metric.value),
                    "timestamp": metric.time_ms,
                    "step": metric.step,
                }
                for metric in metrics
            ]
        if params:
            batch["params"] = [pair._asdict() for pair in params]
        if tags:
            batch["tags"] = [pair._asdict() for pair in tags]
        self._post_checked("runs/log-batch", batch)

    def set_status(self, run: str, status: str, end_ms: int | None) -> None:
        """Set the status of a run, and its end if there is one."""
        fields: dict[str, Any] = {"run_id": run, "status": status}
        if end_ms is not None:
            fields["end_time"] = end_ms
        self._post_checked("runs/update", fields)

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    # -- requests

    def _get(self, endpoint: str, query: Mapping[str, str]) -> dict[str, Any]:
        path = f"{_API}/{endpoint}?{urlencode(query, quote_via=quote)}"
        return self._result(self._http.request("GET", path, None, self._headers()))

    def _post(self, endpoint: str, value: Mapping[str, Any]) -> dict[str, Any]:
        headers = {**self._headers(), "Content-Type": "application/json"}
        return self._result(self._http.post(f"{_API}/{endpoint}", dumps(value), headers))

    def _post_checked(self, endpoint: str, value: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request whose rejection may be temporary: it raises `Retry`."""
        try:
            return self._post(endpoint, value)
        except _MlflowError as error:
            raise _run_error(error) from None

    def _headers(self) -> dict[str, str]:
        headers = authorization(self._uri, self._environ)
        workspace = self._environ.get("MLFLOW_WORKSPACE", "").strip()
        return {**headers, _WORKSPACE_HEADER: workspace} if workspace else headers

    def _result(self, response: ServerResponse) -> dict[str, Any]:
        """Return the JSON object of a response.

        Raises:
            _MlflowError: MLflow rejected the request permanently.
            Retry: everything else, including responses of a proxy or another server: not the fault of the
                run.
        """
        value = _object(response)
        if response.status == 200 and value is not None:
            return value
        text = f"{self._uri}: {response.status} {response.text()}"
        if response.status in (401, 403):
            raise Retry(
                f"{text}: MLFLOW_TRACKING_USERNAME and _PASSWORD, or MLFLOW_TRACKING_TOKEN, were rejected "
                "(if MLFLOW_TRACKING_URI is set, they are only sent to that server)"
            )
        if response.temporary or value is None or "error_code" not in value:
            raise Retry(text, response.retry_after_s)
        raise _MlflowError(str(value["error_code"]), f"{value['error_code']}: {value.get('message', '')}")


def _object(response: ServerResponse) -> dict[str, Any] | None:
    """Return the JSON object of a response. Some servers send nothing, or "200 OK", if there is no result."""
    if response.status == 200 and response.body.strip() in (b"", b"200 OK"):
        return {}
    try:
        value = loads(response.body)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _run_error(error: _MlflowError) -> Exception:
    """Return the exception a destination raises for a rejection: `Gone` if the run does not exist."""
    return Gone(str(error)) if error.code == _MISSING else Rejected(str(error))


def number(value: float) -> float | str:
    """Return a number in the JSON of protocol buffers, where NaN and infinities are strings.

    >>> number(float("-inf")), number(1.5)
    ('-Infinity', 1.5)
    """
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def authorization(uri: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the header that MLflow's own client would send.

    It has user and password from the environment, the tracking URI or `~/.mlflow/credentials`, else a token.
    Without any of them there is none, nor for a server that the credentials do not belong to.
    """
    if not is_trusted(uri, environ):
        return {}
    user, password = environ.get("MLFLOW_TRACKING_USERNAME"), environ.get("MLFLOW_TRACKING_PASSWORD")
    if not (user and password):
        parts = urlsplit(complete(uri, environ))
        in_uri = (unquote(parts.username or ""), unquote(parts.password or ""))
        from_file = _credentials_from_file()
        user, password = in_uri if all(in_uri) else (user or from_file[0], password or from_file[1])
    if user and password:
        return {"Authorization": f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"}
    token = environ.get("MLFLOW_TRACKING_TOKEN")
    return {"Authorization": f"Bearer {token}"} if token else {}


def _credentials_from_file() -> tuple[str, str]:
    """Return user and password from `~/.mlflow/credentials`, "" if there are none."""
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(os.path.expanduser("~/.mlflow/credentials"), encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError) as error:
        raise Retry(f"could not read ~/.mlflow/credentials: {error}") from None
    section = parser["mlflow"] if parser.has_section("mlflow") else {}
    return section.get("mlflow_tracking_username", ""), section.get("mlflow_tracking_password", "")


def tls(environ: Mapping[str, str]) -> Any:
    """Return the TLS settings for a server, from MLflow's variables.

    Raises:
        OSError: a certificate file could not be read.
    """
    import ssl  # 5 MB that plain HTTP does not need

    authorities = environ.get("MLFLOW_TRACKING_SERVER_CERT_PATH") or environ.get("REQUESTS_CA_BUNDLE")
    if authorities and os.path.isdir(authorities):
        context = ssl.create_default_context(capath=authorities)
    else:
        context = ssl.create_default_context(cafile=authorities or None)
    if environ.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() in ("1", "true"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if client := environ.get("MLFLOW_TRACKING_CLIENT_CERT_PATH"):
        context.load_cert_chain(client)
    return context
