"""MLflow's system metrics with our collectors behind them.

    import runvitals.mlflow

    runvitals.mlflow.enable_system_metrics_logging()
    with mlflow.start_run():
        ...

Importing this module puts our monitor in the place of MLflow's own, in this process: whatever turns MLflow's
on (its functions, which are here too, its environment variables, `mlflow.start_run(log_system_metrics=True)`)
turns on ours instead. Names, units, defaults, and what comes before what are MLflow's. The training gets no
thread and sends no request: a monitor process samples into a journal, and the relay delivers it.
"""

from __future__ import annotations

import importlib.util
import math
import os
import posixpath
import sys
from typing import Any
from urllib.parse import quote

from runvitals.environment import launcher
from runvitals.journal import paths
from runvitals.journal.clock import boot_id
from runvitals.relay.destinations.mlflow.address import SAMPLES_LABEL, absolute, public
from runvitals.sdk.attachment import order
from runvitals.sdk.data_folder import usable_directory, working_folder
from runvitals.sdk.delivery import wait_for_delivery
from runvitals.sdk.identity import as_run_id
from runvitals.sdk.messages import tell
from runvitals.sdk.monitor_connection import Tie
from runvitals.sdk.run_clock import clock_of_run
from runvitals.sdk.settings import Settings, resolve

try:
    import mlflow
    from mlflow.system_metrics import system_metrics_monitor
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"{error}; pip install 'runvitals[mlflow]' brings MLflow") from error

ENABLE = "MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING"
INTERVAL = "MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL"
SAMPLES = "MLFLOW_SYSTEM_METRICS_SAMPLES_BEFORE_LOGGING"
NODE = "MLFLOW_SYSTEM_METRICS_NODE_ID"
DEFAULT_INTERVAL_S, DEFAULT_SAMPLES = 10.0, 1
MOST_SAMPLES = 1_000_000
PROJECT = "mlflow"
_WORDS = ("true", "false", "1", "0")
_NODE_MARKS = frozenset("_-.: /")


def enable_system_metrics_logging() -> None:
    """Log system metrics of every MLflow run from here on, but of those that are begun with
    `log_system_metrics=False`. Child processes that import this module do so too.
    """
    os.environ[ENABLE] = "True"


def disable_system_metrics_logging() -> None:
    """Log no system metrics, but of runs that are begun with `log_system_metrics=True`."""
    os.environ[ENABLE] = "False"


def set_system_metrics_sampling_interval(interval: float | None) -> None:
    """Take a sample every so many seconds in runs that begin after this.

    Args:
        interval: seconds, from 0.1 to 3600; None: MLflow's 10.

    Raises:
        ValueError: anything else.
    """
    if interval is not None:
        parse_interval_s(str(interval))
    _set(INTERVAL, interval)


def set_system_metrics_samples_before_logging(samples: int | None) -> None:
    """Make one point of so many samples in runs that begin after this: the mean; of network totals the last.

    Args:
        samples: 1 or more; None: MLflow's 1.

    Raises:
        ValueError: anything else.
    """
    if samples is not None:
        parse_samples(str(samples))
    _set(SAMPLES, samples)


def set_system_metrics_node_id(node_id: str | None) -> None:
    """Name this machine, so that the machines of a run are told apart: `system/<node_id>/…`.

    Args:
        node_id: letters, digits and `_ - . : /` and blanks; None: no name.

    Raises:
        ValueError: what a tracking server would not take.
    """
    if node_id is not None:
        parse_node(str(node_id))
    _set(NODE, node_id)


def start_run(*args: Any, log_system_metrics: bool | None = None, **kwargs: Any) -> mlflow.ActiveRun:
    """`mlflow.start_run`, by the same arguments.

    Args:
        log_system_metrics: True or False for this run, whatever is set for all; None: as is set for all.

    Raises:
        ValueError: the environment variable says neither true nor false. `mlflow.start_run` itself notices
            only after it has made a run.
    """
    word = os.environ.get(ENABLE, "false")
    if log_system_metrics is None and word.lower() not in _WORDS:
        raise ValueError(f"{ENABLE} = {word!r}: it must be one of {', '.join(_WORDS)}")
    return mlflow.start_run(*args, log_system_metrics=log_system_metrics, **kwargs)


class Monitor:
    """What MLflow starts with a run and ends with it; MLflow's `SystemMetricsMonitor` by its interface.

    Processes of one host that log to the same MLflow run under the same node id share one monitor process.

    Args:
        run_id: of the MLflow run.
        sampling_interval: seconds; samples_before_logging: samples in a point; node_id: this machine's name.
            The environment variables go before them.
        resume_logging: for MLflow's sake; the relay asks the server where to go on.
        tracking_uri: default: MLflow's own.

    Raises:
        ValueError: an interval, a number or a name that cannot be, from wherever it is.
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
        self._tie: Tie | None = None

    def start(self) -> None:
        """Have the run measured from here on. 1 to 3 ms; no thread, no fork, no request.

        Raises:
            SettingError: a setting of ours with a value that is not allowed.
            OSError: no journal can be kept anywhere.
        """
        values = self._values()
        if values["mode"] == "disabled":
            return
        run = as_run_id(f"{self._run_id}-{self.node_id}" if self.node_id else self._run_id)
        directory = usable_directory(values["dir"], run, "allow")
        self._settings, self._run, self._directory, self._pid = values, run, directory, os.getpid()
        attach = {"pid": self._pid, "role": "train", **_place()}
        clock = clock_of_run(paths.run_dir(run, directory), boot_id())
        self._tie = Tie(order(values, run, directory, attach, list(sys.orig_argv or ()), clock))
        _open.add(self)

    def finish(self) -> None:
        """The end of the run: waits for its last sample and, for at most `delivery_timeout` seconds, until
        all is delivered. In a forked child, nothing.
        """
        tie, self._tie = self._tie, None
        if tie is None or os.getpid() != self._pid:
            return
        _open.discard(self)
        failed = sys.exc_info()[0] not in (None, SystemExit)
        message = {"op": "finish", "pid": self._pid, "exit_code": int(failed), "closing": False}
        timeout_s = self._settings["finish_timeout"]
        tie.mind()
        if tie.ask(message, timeout_s) is None and timeout_s:
            tell(f"the monitor of run {self._run} did not confirm the end within {timeout_s:g} s")
        wait_for_delivery(self._settings, self._run, self._directory, say=False)

    def forget(self) -> None:
        """In a forked child: close our copy of what is the parent's."""
        if self._tie is not None:
            self._tie.close()
            self._tie = None

    def _values(self) -> dict[str, Any]:
        """Our settings, as far as MLflow's do not say otherwise."""
        given = Settings(sampling_interval=self.sampling_interval).given
        values = resolve(given, os.environ, working_folder())
        others = [text for text in values["destinations"] if text.partition(":")[0] != "mlflow"]
        values["destinations"] = [*others, self._destination]
        values["labels"] = {**values["labels"], SAMPLES_LABEL: str(self.samples_before_logging)}
        if values["project"] == "default":
            values["project"] = PROJECT
        return values


_open: set[Monitor] = set()


def parse_interval_s(text: str) -> float:
    """MLflow's sampling interval in seconds; 0 is its default.

    Raises:
        ValueError: no number from 0.1 to 3600.
    """
    try:
        interval_s = float(text) or DEFAULT_INTERVAL_S
    except ValueError:
        interval_s = math.nan
    if not 0.1 <= interval_s <= 3600.0:
        raise ValueError(f"{INTERVAL} = {text!r}: it must be a number of seconds from 0.1 to 3600")
    return interval_s


def parse_samples(text: str) -> int:
    """How many samples MLflow makes a point of; 0 is its default.

    Raises:
        ValueError: no whole number from 1 to a million.
    """
    try:
        samples = int(text) or DEFAULT_SAMPLES
    except ValueError:
        samples = -1
    if not 1 <= samples <= MOST_SAMPLES:
        raise ValueError(f"{SAMPLES} = {text!r:.80}: it must be a whole number from 1 to {MOST_SAMPLES}")
    return samples


def parse_node(text: str) -> str:
    """A node id that a tracking server takes.

    Raises:
        ValueError: it would not.
    """
    if text and (
        not all(letter.isalnum() or letter in _NODE_MARKS for letter in text)
        or posixpath.normpath(text) != text
        or text.startswith(("/", ".."))
        or len(text) > 128
    ):
        raise ValueError(f"{NODE} = {text!r}: it may hold letters, digits, _ - . : / and blanks, 128 at most")
    return text


def _set(variable: str, value: object) -> None:
    if value is None:
        os.environ.pop(variable, None)
    else:
        os.environ[variable] = str(value)


def _place() -> dict[str, Any]:
    """This process among those of its job."""
    job = launcher.identity(os.environ)
    if job is None:
        return {}
    return {"rank": job.rank, "local_rank": job.local_rank, "world_size": job.world_size}


def _after_fork() -> None:
    for monitor in _open:
        monitor.forget()
    _open.clear()


def _install() -> None:
    """Be what `mlflow.start_run` makes when it looks for its monitor.

    Raises:
        ModuleNotFoundError: without psutil, which we do not use, MLflow does not even look.
    """
    if importlib.util.find_spec("psutil") is None:
        raise ModuleNotFoundError(
            "MLflow logs system metrics only where psutil is installed: pip install 'runvitals[mlflow]'"
        )
    system_metrics_monitor.SystemMetricsMonitor = Monitor
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork)


_install()
