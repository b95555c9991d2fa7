"""The destination: delivers a run's system metrics in MLflow's format, and everything logged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from runvitals.base.mlflow_tracking import SAMPLES_LABEL
from runvitals.base.numbers import parse_integer, parse_number
from runvitals.relay.batch import EVENT, INFO, LIFECYCLE, Batch
from runvitals.relay.destination import Context, Destination, Rejected, Retry
from runvitals.relay.destinations.mlflow import naming
from runvitals.relay.destinations.mlflow.address import MlflowAddress, is_trusted
from runvitals.relay.destinations.mlflow.run_lookup import TargetRun, find_or_create, status_of
from runvitals.relay.destinations.mlflow.system_metrics import MetricWindow
from runvitals.relay.destinations.mlflow.tracking_store import (
    FINISHED,
    METRICS_PER_REQUEST,
    PARAMS_PER_REQUEST,
    RUNNING,
    SYSTEM_PREFIX,
    TAGS_PER_REQUEST,
    MetricPoint,
    NamedText,
    TrackingStore,
)

# MLflow's defaults: one sample per window, every 10 s.
INTERVAL_S, SAMPLES = 10.0, 1
_MAX_STEP = (1 << 63) - 1
_MAX_SAMPLES = 1_000_000
# The only states that the training cannot report to MLflow itself.
_KILLED_STATES = ("crashed", "stopped")
_ONLY_BY_CLIENT = ("MLFLOW_TRACKING_AWS_SIGV4", "MLFLOW_TRACKING_AUTH")


class MlflowDestination(Destination):
    """Delivers to an MLflow tracking server, database or folder.

    Args:
        address: see `MlflowAddress`.
        context: `state` keeps the MLflow run's id, the open window of each monitor, which parameters were
            sent, and how much of the batch in flight has arrived.

    Raises:
        ValueError: invalid address.
        ModuleNotFoundError: the address requires MLflow, which is not installed.
    """

    name = "mlflow"
    # One request every 10 s for all windows that are full by then, instead of two for each.
    interval_s = 10.0
    prompt = False

    def __init__(self, address: str, context: Context) -> None:
        self._address = MlflowAddress.parse(address, context.environ, context.cwd)
        if self._address.node and not naming.is_metric_name(self._address.node):
            raise ValueError(
                f"invalid MLflow node {self._address.node!r}; expected letters, digits, spaces and _ - . : /"
            )
        self._context = context
        self._state = context.state
        self._store = _open_store(self._address, context)

    def deliver(self, batch: Batch) -> None:
        """Deliver a batch.

        Raises:
            Retry: the server is unavailable, or rejected the credentials.
            Rejected: part of the batch was rejected; the rest was delivered.
            Gone: the MLflow run was deleted.
        """
        run = self._run(batch)
        window = self._window(batch, run)
        problems: list[str] = []
        metrics = list(self._system_metrics(batch, window))
        metrics += self._logged_points(batch, problems)
        params = self._params(batch, problems)
        tags = {pair.key: pair for pair in self._tags(batch)}  # the last one for each name
        self._send(batch, run, metrics, params, list(tags.values()), problems)
        self._set_end(batch, run)
        # Only now: if anything had failed, the retried batch must have the same effect.
        if window is not None:
            self._state["windows"][batch.writer.name] = window.state
        self._state["params"] += [list(pair) for pair in params]
        self._state["flight"] = None
        if problems:
            raise Rejected("; ".join(dict.fromkeys(problems)))

    def close(self) -> None:
        """Close the tracking store."""
        self._store.close()

    # -- the MLflow run

    def _run(self, batch: Batch) -> str:
        """Return the MLflow run's id; also determines whether we set its status."""
        if "run" not in self._state:
            if self._address.run:
                self._state.update(run=self._address.run, ours=False, joined=False)
            else:
                again = bool(self._state.get("making"))
                self._state["making"] = True
                self._context.save()
                run = self._find_or_create(batch)
                self._state.update(run=run.run, ours=True, joined=run.joined and not again)
            self._state.update(windows={}, params=[])
            self._context.save()
        return str(self._state["run"])

    def _find_or_create(self, batch: Batch) -> TargetRun:
        """Find or create the MLflow run. Without it nothing is dropped: a user must resolve the problem."""
        try:
            return find_or_create(self._store, self._address.experiment, batch)
        except Rejected as error:
            raise Retry(f"could not create the MLflow run: {error}") from None

    def _set_end(self, batch: Batch, run: str) -> None:
        """Set the status of an MLflow run that we created.

        Of another run only if its processes were killed and it would otherwise stay RUNNING.
        """
        for note in batch.notes_of(LIFECYCLE):
            if note.value.get("what") != "end":
                continue
            state = str(note.value.get("state"))
            if not self._state["ours"] and (state not in _KILLED_STATES or self._state.get("resumed")):
                continue
            stored_status = self._store.state(run).status
            status = status_of(state)
            if stored_status == RUNNING or (stored_status == FINISHED != status):
                self._store.set_status(run, status, note.time_ms)

    # -- samples

    def _window(self, batch: Batch, run: str) -> MetricWindow | None:
        """Return the writer's window, saved once the batch has arrived; None for a writer without samples."""
        if not batch.samples and batch.writer.role != "monitor":
            return None
        windows: dict[str, dict[str, Any]] = self._state["windows"]
        window = windows.get(batch.writer.name)
        if window is None:
            if windows and any(note.value.get("what") == "gap" for note in batch.notes_of(LIFECYCLE)):
                window = list(windows.values())[-1]  # the previous monitor died: continue its window
            else:
                window = MetricWindow(None, self._first_step(run, bool(windows))).state
            windows[batch.writer.name] = window
            self._context.save()  # asked again later, MLflow would include points sent meanwhile
        return MetricWindow(window, 0)

    def _first_step(self, run: str, again: bool) -> int:
        """Return the first step: as MLflow counts, after the largest one of system metrics of all nodes."""
        if self._state["ours"] and not again and not self._state["joined"]:
            return 0
        state = self._store.state(run)
        if state.system_step >= 0:
            self._state["resumed"] = True
        if again and self._state["ours"] and state.status != RUNNING:
            self._store.set_status(run, RUNNING, None)
        return state.system_step + 1

    def _system_metrics(self, batch: Batch, window: MetricWindow | None) -> Iterator[MetricPoint]:
        if window is None:
            return
        prefix = f"{SYSTEM_PREFIX}{self._node(batch)}"
        points = list(window.add(batch.samples, self._samples(batch), _amd(batch)))
        if any(note.value.get("what") == "end" for note in batch.notes_of(LIFECYCLE)):
            points += window.close()
        for point in points:
            yield point._replace(key=prefix + point.key)

    def _node(self, batch: Batch) -> str:
        """Return `node/` if one of several hosts created the MLflow run, to tell them apart; else ""."""
        node = self._address.node
        if node == "host" or (not node and self._state["joined"]):
            node = naming.metric_name(batch.writer.host)
        return f"{node}/" if node else ""

    def _samples(self, batch: Batch) -> int:
        """Return how many samples make a window: as set for the run, or as many as give MLflow's interval."""
        setting = batch.writer.labels.get(SAMPLES_LABEL, "")
        if samples := parse_integer(setting, _MAX_SAMPLES):
            return samples
        environ = self._context.environ
        interval_s = _number(environ.get("MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL")) or INTERVAL_S
        configured = _number(environ.get("MLFLOW_SYSTEM_METRICS_SAMPLES_BEFORE_LOGGING")) or SAMPLES
        return max(1, round(interval_s * configured / (batch.writer.interval_s or 1.0)))

    # -- logged values

    def _logged_points(self, batch: Batch, problems: list[str]) -> list[MetricPoint]:
        """Return the values of `log()`.

        Those of ranks other than the first get a prefix, to keep their curves apart.
        """
        prefix = f"rank-{batch.writer.rank}/" if batch.writer.rank else ""
        metrics = []
        for row in batch.logs:
            step = int(row.step or 0)
            if abs(step) > _MAX_STEP:
                problems.append(f"step {step} exceeds MLflow's limit")
                continue
            for key, value in row.numbers().items():
                metrics.append(MetricPoint(naming.metric_name(prefix + key), value, row.time_ms, step))
        return metrics

    def _params(self, batch: Batch, problems: list[str]) -> list[NamedText]:
        """Return new parameters.

        MLflow does not allow changes: a changed value is reported and not sent.
        """
        params: dict[str, str] = dict(self._state["params"])
        fresh: dict[str, str] = {}
        for note in batch.notes_of(INFO):
            config = note.value.get("config")
            for key, value in naming.params(config) if isinstance(config, dict) else ():
                before = fresh.get(key, params.get(key))
                if before is None:
                    fresh[key] = value
                elif before != value:
                    problems.append(
                        f"parameter {key} changed from {before} to {value}: MLflow keeps the first value"
                    )
        return [NamedText(key, value) for key, value in fresh.items()]

    def _tags(self, batch: Batch) -> Iterator[NamedText]:
        """Yield the run's results and events as tags."""
        for note in batch.notes_of(INFO):
            summary = note.value.get("summary")
            if isinstance(summary, dict):
                yield from naming.params(summary, "summary.")
            if self._state["ours"]:
                yield from naming.tags(note.value)
        alerts = [note for note in batch.notes_of(EVENT) if note.value.get("name") == "alert"]
        for note in alerts:
            title, body = note.value.get("title", ""), note.value.get("text", "")
            yield NamedText(f"runvitals.alert.{note.time_ms}", f"{title}: {body}"[: naming.MAX_TAG_LENGTH])

    # -- sending

    def _send(
        self,
        batch: Batch,
        run: str,
        metrics: Sequence[MetricPoint],
        params: Sequence[NamedText],
        tags: Sequence[NamedText],
        problems: list[str],
    ) -> None:
        """Send everything in as few requests as MLflow allows; requests that arrived before are skipped."""
        key = [batch.writer.name, batch.first_seq]
        flight = self._state.get("flight") or {}
        arrived = int(flight["arrived"]) if flight.get("batch") == key else 0
        requests: list[tuple[str, Sequence[Any]]] = []
        requests += [("params", part) for part in _parts(params, PARAMS_PER_REQUEST)]
        requests += [("metrics", part) for part in _parts(metrics, METRICS_PER_REQUEST)]
        requests += [("tags", part) for part in _parts(tags, TAGS_PER_REQUEST)]
        for number, (kind, part) in enumerate(requests):
            if number < arrived:
                continue
            problems += self._log(run, kind, part)
            self._state["flight"] = {"batch": key, "arrived": number + 1}

    def _log(self, run: str, kind: str, part: Sequence[Any]) -> list[str]:
        """Send a request; if it is rejected, send its halves, down to the single rejected item."""
        try:
            self._store.log(run, **{kind: part})
        except Rejected as error:
            if len(part) == 1:
                return [f"{part[0].key}: {error}"]
            middle = len(part) // 2
            return self._log(run, kind, part[:middle]) + self._log(run, kind, part[middle:])
        return []


def _open_store(address: MlflowAddress, context: Context) -> TrackingStore:
    """Return a store: REST for HTTP URIs, MLflow's own client for all else and for other authentication."""
    by_client = any(context.environ.get(name) for name in _ONLY_BY_CLIENT)
    if address.is_web and not (by_client and is_trusted(address.uri, context.environ)):
        from runvitals.relay.destinations.mlflow.rest_store import RestStore

        return RestStore(address.uri, context.environ)
    from runvitals.relay.destinations.mlflow.client_store import ClientStore

    return ClientStore(address.uri, context.environ)


def _amd(batch: Batch) -> frozenset[int]:
    """Return the indices of AMD GPUs, from the facts about the machine."""
    listed = batch.run.machine.get("gpu_amd")
    devices = listed if isinstance(listed, list) else []
    indices = (gpu.get("index") for gpu in devices if isinstance(gpu, dict))
    return frozenset(index for index in indices if isinstance(index, int))


def _number(text: str | None) -> float:
    """Return the value of an MLflow variable; 0, which MLflow also treats as unset, if it is not a number."""
    return parse_number(text or "", 0.0, 1e9) or 0.0


def _parts(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
