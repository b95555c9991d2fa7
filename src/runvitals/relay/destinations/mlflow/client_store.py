"""A tracking store accessed with MLflow's own client: databases, folders, Databricks, plug-ins.

MLflow is imported into the relay, never into the training. Its client reads credentials from the process
environment, so the training's variables are set for the duration of each call, one call at a time.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runvitals.base.mlflow_tracking import URI_VARIABLE, complete
from runvitals.relay.destination import Gone, Rejected, Retry
from runvitals.relay.destinations.mlflow.tracking_store import (
    RUNNING,
    MetricPoint,
    NamedText,
    RunState,
    last_system_step,
)

_PREFIX = "MLFLOW_"
# The relay retries by itself, and its use of MLflow is not reported as telemetry.
_RELAY_VARIABLES = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0", "MLFLOW_DISABLE_TELEMETRY": "true"}
_PERMANENT = frozenset(
    {
        "INVALID_PARAMETER_VALUE",
        "BAD_REQUEST",
        "RESOURCE_ALREADY_EXISTS",
        "RESOURCE_CONFLICT",
        "INVALID_STATE",
    }
)
_environment_lock = threading.Lock()


class ClientStore:
    """A tracking store behind MLflow's client.

    Args:
        uri: anything `mlflow.set_tracking_uri` accepts; absolute.
        environ: the training's MLflow variables.

    Raises:
        ModuleNotFoundError: MLflow is not installed in the relay's Python.

    Example:
        >>> store = ClientStore("sqlite:////data/mlflow.db", os.environ)
        >>> store.log(run, [MetricPoint("loss", 0.5, 1700000000000, 3)])
    """

    def __init__(self, uri: str, environ: Mapping[str, str]) -> None:
        self._uri = uri
        self._environ = environ
        self._mlflow_client: Any = None
        with self._environment():
            import mlflow  # noqa: F401 - takes 1.5 s; imported here to report immediately if it is missing

    # -- the interface of `TrackingStore`

    def experiment(self, name: str) -> str:
        """Return the id of the experiment with a name, which is created if it does not exist."""
        with self._client() as client:
            experiment = client.get_experiment_by_name(name)
            return str(client.create_experiment(name) if experiment is None else experiment.experiment_id)

    def runs_with(self, experiment: str, tag: NamedText) -> list[str]:
        """Return the ids of at most 10 runs with a tag, the oldest first."""
        with self._client() as client:
            tag_filter = f"tags.`{tag.key}` = '{tag.value}'"
            order = ["attributes.start_time ASC", "attributes.run_id ASC"]
            runs = client.search_runs([experiment], tag_filter, max_results=10, order_by=order)
            return [str(run.info.run_id) for run in runs]

    def make_run(self, experiment: str, name: str, start_ms: int, tags: Sequence[NamedText]) -> str:
        """Create a run and return its id."""
        with self._client() as client:
            run = client.create_run(experiment, start_ms, {pair.key: pair.value for pair in tags}, name)
            return str(run.info.run_id)

    def drop_run(self, run: str) -> None:
        """Delete a run; it can be restored in MLflow."""
        with self._client() as client:
            client.delete_run(run)

    def state(self, run: str) -> RunState:
        """Return the status of a run and the last step of its system metrics."""
        with self._client() as client:
            run_info = client.get_run(run)
            # Not public, but MLflow's own monitor calls it for the same reason: all other calls return no
            # steps, or the whole history.
            steps = [(metric.key, int(metric.step)) for metric in run_info.data._metric_objs]
            return RunState(str(run_info.info.status), last_system_step(steps))

    def log(
        self,
        run: str,
        metrics: Sequence[MetricPoint] = (),
        params: Sequence[NamedText] = (),
        tags: Sequence[NamedText] = (),
    ) -> None:
        """Log metrics, parameters and tags of a run."""
        from mlflow import entities

        with self._client() as client:
            client.log_batch(
                run,
                metrics=[
                    entities.Metric(metric.key, metric.value, metric.time_ms, metric.step)
                    for metric in metrics
                ],
                params=[entities.Param(pair.key, pair.value) for pair in params],
                tags=[entities.RunTag(pair.key, pair.value) for pair in tags],
            )

    def set_status(self, run: str, status: str, end_ms: int | None) -> None:
        """Set the status of a run, and its end unless it runs."""
        with self._client() as client:
            if status == RUNNING:
                client.update_run(run, status=status)
            else:
                client.set_terminated(run, status, end_ms)

    def close(self) -> None:
        """Forget the client."""
        self._mlflow_client = None

    # -- MLflow

    @contextlib.contextmanager
    def _client(self) -> Iterator[Any]:
        """Yield MLflow's client in the training's environment; its errors are converted to ours."""
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException

        with self._environment():
            try:
                if self._mlflow_client is None:
                    self._mlflow_client = MlflowClient(complete(self._uri, self._environ))
                yield self._mlflow_client
            except MlflowException as error:
                text = " ".join(str(error).split())[:500]
                if error.error_code == "RESOURCE_DOES_NOT_EXIST":
                    raise Gone(text) from None
                raise (Rejected(text) if error.error_code in _PERMANENT else Retry(text)) from None

    @contextlib.contextmanager
    def _environment(self) -> Iterator[None]:
        """Set the training's MLflow variables, and no others, in this process for the duration of a call."""
        with _environment_lock:
            before = _variables(os.environ)
            # Not this one: the client is given the URI explicitly, and it may contain a password.
            variables = {**_variables(self._environ), **_RELAY_VARIABLES}
            variables.pop(URI_VARIABLE, None)
            try:
                _replace(variables)
                yield
            finally:
                _replace(before)


def _variables(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in environ.items() if name.startswith(_PREFIX)}


def _replace(variables: Mapping[str, str]) -> None:
    for name in _variables(os.environ).keys() - variables.keys():
        del os.environ[name]
    os.environ.update(variables)
