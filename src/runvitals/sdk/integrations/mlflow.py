"""A replacement for MLflow's system metrics monitor.

    import runvitals.mlflow

    runvitals.mlflow.enable_system_metrics_logging()
    with mlflow.start_run():
        ...

Importing this module replaces MLflow's monitor with ours in this process. Everything that enables MLflow's
monitor (its functions, which this module provides too, its environment variables,
`mlflow.start_run(log_system_metrics=True)`) then enables ours. Names, units, defaults and the precedence of
settings are MLflow's. No thread runs in the training and it sends no requests: a monitor process samples into
a journal, and the relay delivers it.
"""

from __future__ import annotations

import importlib.util
import os
import posixpath
import sys
from typing import Any
from urllib.parse import quote

from runvitals.base.mlflow_tracking import SAMPLES_LABEL, absolute, public
from runvitals.base.numbers import parse_integer, parse_number
from runvitals.journal import paths
from runvitals.journal.clock import boot_id
from runvitals.monitoring.environment import launcher
from runvitals.monitoring.settings.messages import notify
from runvitals.monitoring.settings.settings import Settings, resolve
from runvitals.sdk.attachment import monitor_spec
from runvitals.sdk.data_folder import usable_directory, working_folder
from runvitals.sdk.delivery import wait_for_delivery
from runvitals.sdk.identity import as_run_id
from runvitals.sdk.monitor_connection import MonitorConnection
from runvitals.sdk.run_clock import clock_of_run

try:
    import mlflow
    from mlflow.system_metrics import system_metrics_monitor
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"{error}; install it with pip install 'runvitals[mlflow]'") from error

ENABLE = "MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING"
INTERVAL = "MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL"
SAMPLES = "MLFLOW_SYSTEM_METRICS_SAMPLES_BEFORE_LOGGING"
NODE = "MLFLOW_SYSTEM_METRICS_NODE_ID"
DEFAULT_INTERVAL_S, DEFAULT_SAMPLES = 10.0, 1
MAX_SAMPLES = 1_000_000
PROJECT = "mlflow"
_WORDS = ("true", "false", "1", "0")
_NODE_MARKS = frozenset("_-.: /")


def enable_system_metrics_logging() -> None:
    """Log system metrics for every MLflow run from now on.

    Runs started with `log_system_metrics=False` are excepted. Also applies to child processes that import
    this module.
    """
    os.environ[ENABLE] = "True"


def disable_system_metrics_logging() -> None:
    """Log no system metrics, except for runs started with `log_system_metrics=True`."""
    os.environ[ENABLE] = "False"


def set_system_metrics_sampling_interval(interval: float | None) -> None:
    """Set the sampling interval of runs started after this call.

    Args:
        interval: seconds, from 0.1 to 3600; None for MLflow's default of 10.

    Raises:
        ValueError: any other value.
    """
    if interval is not None:
        parse_interval_s(str(interval))
    _set(INTERVAL, interval)


def set_system_metrics_samples_before_logging(samples: int | None) -> None:
    """Set how many samples are aggregated into one logged point, in runs started after this call.

    The point is their mean; for network totals it is the last value.

    Args:
        samples: 1 or more; None for MLflow's default of 1.

    Raises:
        ValueError: any other value.
    """
    if samples is not None:
        parse_samples(str(samples))
    _set(SAMPLES, samples)


def set_system_metrics_node_id(node_id: str | None) -> None:
    """Set this host's node id, which distinguishes the hosts of a run: `system/<node_id>/…`.

    Args:
        node_id: letters, digits, `_ - . : /` and spaces; None for no node id.

    Raises:
        ValueError: a tracking server would reject it.
    """
    if node_id is not None:
        parse_node(str(node_id))
    _set(NODE, node_id)


def start_run(*args: Any, log_system_metrics: bool | None = None, **kwargs: Any) -> mlflow.ActiveRun:
    """Call `mlflow.start_run` with the same arguments, and check the environment variable first.

    Args:
        log_system_metrics: True or False overrides the global setting for this run; None uses it.

    Raises:
        ValueError: the environment variable is neither true nor false. `mlflow.start_run` itself checks it
            only after it has created a run.
    """
    word = os.environ.get(ENABLE, "false")
    if log_system_metrics is None and word.lower() not in _WORDS:
        raise ValueError(f"invalid {ENABLE} = {word!r}: expected one of {', '.join(_WORDS)}")
    return mlflow.start_run(*args, log_system_metrics=log_system_metrics, **kwargs)


class MlflowMonitor:
    """Implements the interface of MLflow's `SystemMetricsMonitor`. MLflow starts and finishes it with a run.

    Processes of one host that log to the same MLflow run with the same node id share one monitor process.

    Args:
        run_id: the MLflow run.
        sampling_interval: seconds.
        samples_before_logging: samples per logged point.
        resume_logging: ignored; the relay asks the server where to resume.
        node_id: distinguishes this host.
        tracking_uri: default: MLflow's own.

    The environment variables override `sampling_interval`, `samples_before_logging` and `node_id`.

    Raises:
        ValueError: one of these three is invalid, in the arguments or in the environment.
    """

    def __init__(
        self,
        run_id: str,
        sampling_interval: float = DEFAULT_INTERVAL_S,
        samples_before_logging: int = DEFAULT_SAMPLES,
        resume_logging: bool = False,
        node_id: str | None = None,
        tracking_uri: str | None = None,
    ) -> None:
        self.sampling_interval = parse_interval_s(os.environ.get(INTERVAL) or str(sampling_interval))
        self.samples_before_logging = parse_samples(os.environ.get(SAMPLES) or str(samples_before_logging))
        self.node_id = parse_node(os.environ.get(NODE) or node_id or "") or None
        self._run_id = run_id
        uri = absolute(public(tracking_uri or mlflow.get_tracking_uri()), working_folder())
        self._destination = f"mlflow:{uri}#run={quote(run_id)}"
        if self.node_id:
            self._destination += f"&node={quote(self.node_id, safe='')}"
        self._pid = 0
        self._run = self._directory = ""
        self._settings: dict[str, Any] = {}
        self._connection: MonitorConnection | None = None

    def start(self) -> None:
        """Start monitoring the run. Takes 1 to 3 ms; starts no thread, does not fork, sends no request.

        Raises:
            SettingError: a runvitals setting is invalid.
            OSError: no folder is writable for the journal.
        """
        values = self._values()
        if values["mode"] == "disabled":
            return
        run = as_run_id(f"{self._run_id}-{self.node_id}" if self.node_id else self._run_id)
        directory = usable_directory(values["dir"], run, "allow")
        self._settings, self._run, self._directory, self._pid = values, run, directory, os.getpid()
        attach = {"pid": self._pid, "role": "train", **_rank_fields()}
        clock = clock_of_run(paths.run_dir(run, directory), boot_id())
        self._connection = MonitorConnection(
            monitor_spec(values, run, directory, attach, list(sys.orig_argv or ()), clock)
        )
        _open.add(self)

    def finish(self) -> None:
        """Finish monitoring; does nothing in a forked child.

        Waits for the last sample and, at most `delivery_timeout` seconds, for delivery.
        """
        connection, self._connection = self._connection, None
        if connection is None or os.getpid() != self._pid:
            return
        _open.discard(self)
        failed = sys.exc_info()[0] not in (None, SystemExit)
        message = {"op": "finish", "pid": self._pid, "exit_code": int(failed), "closing": False}
        timeout_s = self._settings["finish_timeout"]
        connection.ensure()
        if connection.ask(message, timeout_s) is None and timeout_s:
            notify(f"the monitor of run {self._run} did not confirm the run's end within {timeout_s:g} s")
        wait_for_delivery(self._settings, self._run, self._directory, say=False)

    def after_fork(self) -> None:
        """Close a forked child's copy of the parent's connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _values(self) -> dict[str, Any]:
        """Return our settings, overridden by MLflow's."""
        arguments = Settings(sampling_interval=self.sampling_interval).given
        values = resolve(arguments, os.environ, working_folder())
        others = [text for text in values["destinations"] if text.partition(":")[0] != "mlflow"]
        values["destinations"] = [*others, self._destination]
        values["labels"] = {**values["labels"], SAMPLES_LABEL: str(self.samples_before_logging)}
        if values["project"] == "default":
            values["project"] = PROJECT
        return values


_open: set[MlflowMonitor] = set()


def parse_interval_s(text: str) -> float:
    """Return MLflow's sampling interval in seconds; 0 means the default.

    Raises:
        ValueError: not a number from 0.1 to 3600.
    """
    interval_s = parse_number(text, 0.0, 3600.0)
    if interval_s is None or 0 < interval_s < 0.1:
        raise ValueError(f"invalid {INTERVAL} = {text!r}: expected a number of seconds from 0.1 to 3600")
    return interval_s or DEFAULT_INTERVAL_S


def parse_samples(text: str) -> int:
    """Return how many samples MLflow aggregates into a point; 0 means the default.

    Raises:
        ValueError: not an integer from 1 to a million.
    """
    samples = parse_integer(text.strip(), MAX_SAMPLES)
    if samples is None:
        raise ValueError(f"invalid {SAMPLES} = {text!r:.80}: expected an integer from 1 to {MAX_SAMPLES}")
    return samples or DEFAULT_SAMPLES


def parse_node(text: str) -> str:
    """Return a node id that a tracking server accepts.

    Raises:
        ValueError: a tracking server would reject it.
    """
    if text and (
        not all(letter.isalnum() or letter in _NODE_MARKS for letter in text)
        or posixpath.normpath(text) != text
        or text.startswith(("/", ".."))
        or len(text) > 128
    ):
        raise ValueError(
            f"invalid {NODE} = {text!r}: expected at most 128 letters, digits, _ - . : / and spaces"
        )
    return text


def _set(variable: str, value: object) -> None:
    if value is None:
        os.environ.pop(variable, None)
    else:
        os.environ[variable] = str(value)


def _rank_fields() -> dict[str, Any]:
    """Return this process's ranks in its job; empty without a launcher."""
    job = launcher.identity(os.environ)
    if job is None:
        return {}
    return {"rank": job.rank, "local_rank": job.local_rank, "world_size": job.world_size}


def _after_fork() -> None:
    for monitor in _open:
        monitor.after_fork()
    _open.clear()


def _install() -> None:
    """Replace the monitor class that `mlflow.start_run` creates.

    Raises:
        ModuleNotFoundError: psutil is missing. We do not use it, but MLflow starts no monitor without it.
    """
    if importlib.util.find_spec("psutil") is None:
        raise ModuleNotFoundError(
            "MLflow logs system metrics only if psutil is installed: pip install 'runvitals[mlflow]'"
        )
    system_metrics_monitor.SystemMetricsMonitor = MlflowMonitor
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork)


_install()
