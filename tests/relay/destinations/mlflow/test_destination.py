"""The destination `mlflow:` against a tracking server in memory that fails on demand."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from runvitals.relay.batch import EVENT, INFO, LIFECYCLE, Batch, LogRow, Note, RunFacts, Samples, WriterFacts
from runvitals.relay.destination import Context, Gone, Rejected, Retry
from runvitals.relay.destinations.mlflow.destination import MlflowDestination
from runvitals.relay.engine.destination_spec import DestinationSpec
from tests.relay.destinations.mlflow.tracking import Tracking

T0 = 1_700_000_000_000
RUN = "0123456789abcdef0123456789abcdef"
CPU = "system/cpu_utilization_percentage"


@pytest.fixture
def tracking() -> Iterator[Tracking]:
    tracking = Tracking()
    yield tracking
    tracking.close()


class Far:
    """A destination as the relay holds it: each time a new one, whose state is what JSON kept."""

    def __init__(self, tracking: Tracking, folder: Path, options: str = f"#run={RUN}") -> None:
        self.address = tracking.url + options
        self.folder = folder
        self.environ: dict[str, str] = {}
        self.kept = "{}"
        self.run = RunFacts("r1", "vision")
        self.seq = 0

    def batch(self, role: str = "monitor", life: int = 1, host: str = "n1", samples: str = "1") -> Batch:
        writer = WriterFacts(f"{role}.{host}.{life}", role, host)
        writer.started_ms, writer.interval_s = T0, 1.0
        if samples:
            writer.labels = {"mlflow_samples": samples}
        self.seq += 1
        return Batch(self.run, writer, self.seq, self.seq)

    def cpu(self, *values: float, **about: Any) -> Batch:
        return self.samples(["cpu.mean"], [[value] for value in values], **about)

    def samples(self, keys: Sequence[str], rows: Sequence[Sequence[float]], **about: Any) -> Batch:
        batch = self.batch(**about)
        table = Samples(keys)
        for row in rows:
            self.seq += 1
            table.add(self.seq, T0 + 1000 * self.seq, struct.pack(f"<{len(row)}d", *row))
        batch.samples.append(table)
        return batch

    def noted(self, kind: str, batch: Batch | None = None, **value: Any) -> Batch:
        batch = batch or self.batch()
        batch.notes.append(Note(1, kind, {"t": T0 + 9000, **value}))
        return batch

    def deliver(self, *batches: Batch) -> None:
        state: dict[str, Any] = json.loads(self.kept)

        def save() -> None:
            self.kept = json.dumps(state)

        context = Context("r1", str(self.folder), "/", state, save, lambda text: None, self.environ)
        destination = MlflowDestination(self.address, context)
        try:
            for batch in batches:
                destination.deliver(batch)
        finally:
            save()
            destination.close()


@pytest.fixture
def far(tracking: Tracking, tmp_path: Path) -> Far:
    tracking.begin(RUN)
    return Far(tracking, tmp_path)


@pytest.fixture
def own(tracking: Tracking, tmp_path: Path) -> Far:
    """A run of ours that MLflow knows nothing of."""
    return Far(tracking, tmp_path, "")


def test_is_built_in() -> None:
    assert DestinationSpec("mlflow:http://host:5000#run=0f").factory() is MlflowDestination


# -- system metrics in a run of MLflow's


def test_sends_a_batch_in_one_request(far: Far, tracking: Tracking) -> None:
    far.deliver(far.cpu(10.0, 20.0, 30.0))
    assert tracking.points(RUN, CPU) == [(0, 10.0), (1, 20.0), (2, 30.0)]
    assert [path for path, _ in tracking.requests] == ["runs/get", "runs/log-batch"]
    far.deliver(far.cpu(40.0))
    assert tracking.points(RUN, CPU)[-1] == (3, 40.0)
    assert len(tracking.requests) == 3


def test_steps_continue_after_the_last_of_any_node(far: Far, tracking: Tracking) -> None:
    steps = [("loss", 900), ("system/n0/cpu_utilization_percentage", 4), (CPU, 2)]
    tracking.begin(RUN, metrics=[{"key": key, "value": 1.0, "step": step} for key, step in steps])
    far.deliver(far.cpu(10.0))
    assert (5, 10.0) in tracking.points(RUN, CPU)


def test_node_prefixes(far: Far, tracking: Tracking) -> None:
    far.address += "&node=rack/7"
    far.deliver(far.cpu(10.0))
    assert tracking.keys(RUN) == {"system/rack/7/cpu_utilization_percentage"}
    far.address = far.address.replace("rack/7", "a//b")
    with pytest.raises(ValueError, match="a//b"):
        far.deliver(far.cpu(10.0))


def test_window_across_batches_and_the_rest_at_the_end(far: Far, tracking: Tracking) -> None:
    far.deliver(far.cpu(10.0, 20.0, samples="3"))
    assert tracking.points(RUN, CPU) == []
    far.deliver(far.cpu(60.0, 5.0, samples="3"))
    assert tracking.points(RUN, CPU) == [(0, 30.0)]
    far.deliver(far.noted(LIFECYCLE, far.cpu(7.0, samples="3"), what="end", state="finished"))
    assert tracking.points(RUN, CPU) == [(0, 30.0), (1, 6.0)]


def test_replacement_monitor_continues_the_window(far: Far, tracking: Tracking) -> None:
    keys = ["cpu.mean", "network.sent"]
    far.deliver(far.samples(keys, [[10.0, 100e6], [20.0, 103e6], [30.0, 104e6]], samples="2"))
    later = far.samples(keys, [[50.0, 107e6]], life=2, samples="2")
    far.deliver(far.noted(LIFECYCLE, later, what="gap", since=T0))
    assert tracking.points(RUN, CPU) == [(0, 15.0), (1, 40.0)]
    assert tracking.points(RUN, "system/network_transmit_megabytes") == [(0, 3.0), (1, 7.0)]


def test_resumed_run_counts_traffic_from_zero(far: Far, tracking: Tracking) -> None:
    far.deliver(far.samples(["network.sent"], [[1e6], [3e6]]))
    far.deliver(far.samples(["network.sent"], [[8e6], [9e6]], life=2))
    key = "system/network_transmit_megabytes"
    assert tracking.points(RUN, key) == [(0, 0.0), (1, 2.0), (2, 0.0), (3, 1.0)]


# -- failures


@pytest.mark.parametrize("status", [503, 429, 404, 401])
def test_failed_request_causes_no_loss_or_duplicates(far: Far, tracking: Tracking, status: int) -> None:
    batch = seven_samples_of_many_gpus(far)
    tracking.faults.extend([(0, ""), (status, "7")])
    with pytest.raises(Retry) as failed:
        far.deliver(batch)
    assert failed.value.after_s == (None if status == 401 else 7.0)
    far.deliver(batch)
    far.deliver(far.cpu(8.0, samples="2"))
    assert tracking.points(RUN, CPU) == [(0, 0.5), (1, 2.5), (2, 4.5), (3, 7.0)]
    first = tracking.asked("runs/log-batch")[0]
    assert tracking.asked("runs/log-batch").count(first) == 1  # what had arrived is not sent again


def test_lost_response_repeats_identical_points(far: Far, tracking: Tracking) -> None:
    tracking.faults.extend([(0, ""), (599, "")])
    far.deliver(seven_samples_of_many_gpus(far))
    sent = tracking.asked("runs/log-batch")
    assert sent[1] == sent[2]
    assert tracking.points(RUN, CPU) == [(0, 0.5), (1, 2.5), (2, 4.5)]


def seven_samples_of_many_gpus(far: Far) -> Batch:
    """Three windows and a half, which make two requests."""
    keys = ["cpu.mean", *(f"gpu.{i}.powerWatts" for i in range(400))]
    return far.samples(keys, [[float(row), *range(400)] for row in range(7)], samples="2")


def test_rejected_values_are_reported_and_the_rest_delivered(far: Far, tracking: Tracking) -> None:
    tracking.rejected = {"bad"}
    batch = far.batch("train")
    batch.logs.append(LogRow(1, T0, 3, {"bad": 1.0, **{f"m{i}": float(i) for i in range(9)}}))
    with pytest.raises(Rejected, match=r"^bad: INVALID_PARAMETER_VALUE"):
        far.deliver(batch)
    assert tracking.keys(RUN) == {f"m{i}" for i in range(9)}


def test_deleted_run_raises_gone(far: Far, tracking: Tracking) -> None:
    del tracking.runs[RUN]
    with pytest.raises(Gone, match="not found"):
        far.deliver(far.cpu(1.0))


@pytest.mark.parametrize(
    ("ours", "there", "resumed", "then"),
    [
        ("crashed", "RUNNING", False, "FAILED"),
        ("stopped", "RUNNING", False, "KILLED"),
        ("crashed", "RUNNING", True, "RUNNING"),  # other nodes may be at it
        ("crashed", "FINISHED", False, "FAILED"),
        ("finished", "RUNNING", False, "RUNNING"),  # MLflow's own affair
    ],
)
def test_killed_training_is_marked_failed(
    far: Far, tracking: Tracking, ours: str, there: str, resumed: bool, then: str
) -> None:
    if resumed:
        tracking.runs[RUN]["metrics"] = [{"key": CPU, "value": 1.0, "step": 0}]
    far.deliver(far.cpu(1.0))
    tracking.runs[RUN]["status"] = there
    far.deliver(far.noted(LIFECYCLE, what="end", state=ours))
    assert tracking.runs[RUN]["status"] == then


# -- a run of ours


def test_creates_a_run_with_name_tags_and_parameters(own: Far, tracking: Tracking) -> None:
    own.run.run["name"] = "first try"
    about = {
        "name": "first try",
        "tags": ["a", "b"],
        "notes": "why",
        "group": "g",
    }
    machine = {"command": ["python", "x.py"], "user": "me", "git": {"commit": "0ec4", "root": "/x"}}
    begun = own.noted(INFO, own.cpu(*[float(i) for i in range(11)], samples=""), run=about)
    own.noted(INFO, begun, machine=machine)
    logged = own.batch("train")
    own.noted(INFO, logged, config={"lr": 0.1, "model": {"layers": [2, 3], "name": "resnet"}, "seed": None})
    logged.logs.append(LogRow(1, T0, 5, {"train/loss": 0.5, "val//acc@1": 0.9, "word": "x"}))
    logged.logs.append(LogRow(2, T0 + 1, 6, {"train/loss": float("nan"), "bound": float("-inf")}))
    own.noted(INFO, logged, summary={"best": 0.4})
    own.noted(EVENT, logged, name="alert", title="high", text="loss")
    own.deliver(begun, logged)
    (run,) = tracking.runs
    there = tracking.runs[run]
    assert tracking.experiments[("vision")] == there["experiment"]
    assert there["name"] == "first try"
    assert there["params"] == {
        "lr": "0.1",
        "model.layers": "[2,3]",
        "model.name": "resnet",
        "seed": "None",
    }
    assert tracking.points(run, "train/loss") == [(5, 0.5), (6, "NaN")]
    assert tracking.points(run, "val/acc_1") == [(5, 0.9)]
    assert tracking.points(run, "bound") == [(6, "-Infinity")]
    assert tracking.points(run, CPU) == [(0, 4.5)]  # ten samples a second apart: MLflow's 10 s
    assert there["tags"] == {
        "runvitals.run": "r1",
        "runvitals.project": "vision",
        "mlflow.source.type": "LOCAL",
        "mlflow.runName": "first try",
        "mlflow.note.content": "why",
        "mlflow.source.name": "python x.py",
        "mlflow.source.git.commit": "0ec4",
        "mlflow.user": "me",
        "runvitals.tags": "a, b",
        "runvitals.group": "g",
        "summary.best": "0.4",
        f"runvitals.alert.{T0 + 9000}": "high: loss",
    }


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("finished", "FINISHED"), ("failed", "FAILED"), ("crashed", "FAILED"), ("stopped", "KILLED")],
)
def test_sets_the_final_status(own: Far, tracking: Tracking, ours: str, theirs: str) -> None:
    own.deliver(own.noted(LIFECYCLE, own.cpu(1.0), what="end", state=ours))
    assert [run["status"] for run in tracking.runs.values()] == [theirs]
    own.deliver(own.cpu(2.0, life=2))
    assert [run["status"] for run in tracking.runs.values()] == ["RUNNING"]  # it was resumed


def test_finds_the_run_after_a_kill_during_creation(own: Far, tracking: Tracking) -> None:
    own.deliver(own.cpu(1.0))
    own.kept = json.dumps({"making": True})
    own.deliver(own.cpu(1.0, 2.0))
    (run,) = tracking.runs
    assert tracking.keys(run) == {CPU}


def test_hosts_share_a_run_with_distinct_prefixes(own: Far, tracking: Tracking, tmp_path: Path) -> None:
    other = Far(tracking, tmp_path, "")
    own.deliver(own.cpu(1.0))
    other.deliver(other.cpu(2.0, host="n2"))
    (run,) = tracking.runs
    assert tracking.keys(run) == {CPU, "system/n2/cpu_utilization_percentage"}


def test_a_changed_parameter_keeps_its_first_value_and_is_reported(own: Far, tracking: Tracking) -> None:
    own.deliver(own.noted(INFO, config={"lr": 0.1}))
    own.deliver(own.noted(INFO, config={"lr": 0.1, "new": 1}))
    with pytest.raises(Rejected, match=r"parameter lr changed from 0\.1 to 0\.2"):
        own.deliver(own.noted(INFO, config={"lr": 0.2}))
    assert [run["params"] for run in tracking.runs.values()] == [{"lr": "0.1", "new": "1"}]


def test_rank_prefixes_and_last_summary_value(own: Far, tracking: Tracking) -> None:
    for rank in (0, 1):
        batch = own.batch("train")
        batch.writer.rank = rank
        batch.logs.append(LogRow(1, T0, 5, {"loss": 0.5}))
        own.noted(INFO, own.noted(INFO, batch, summary={"best": 1}), summary={"best": rank + 2})
        own.deliver(batch)
    ((run, there),) = tracking.runs.items()
    assert tracking.keys(run) == {"loss", "rank-1/loss"}
    assert there["tags"]["summary.best"] == "3"


def test_retries_while_the_run_cannot_be_created(own: Far, tracking: Tracking) -> None:
    tracking.deleted = {"vision"}
    with pytest.raises(Retry, match="could not create the MLflow run: RESOURCE_ALREADY_EXISTS"):
        own.deliver(own.cpu(1.0))


@pytest.mark.parametrize("count", [1, 250])
def test_splits_many_parameters_into_requests(own: Far, tracking: Tracking, count: int) -> None:
    own.deliver(own.noted(INFO, config={f"p{i}": i for i in range(count)}))
    assert [len(run["params"]) for run in tracking.runs.values()] == [count]


# -- credentials


@pytest.mark.parametrize(
    ("environ", "header"),
    [
        ({}, None),
        ({"MLFLOW_TRACKING_USERNAME": "me", "MLFLOW_TRACKING_PASSWORD": "pw"}, "Basic bWU6cHc="),
        ({"MLFLOW_TRACKING_TOKEN": "t0k"}, "Bearer t0k"),
        ({"MLFLOW_TRACKING_TOKEN": "t0k", "MLFLOW_TRACKING_URI": "http://{host}/"}, "Bearer t0k"),
        ({"MLFLOW_TRACKING_TOKEN": "t0k", "MLFLOW_TRACKING_URI": "https://another"}, None),
        ({"MLFLOW_TRACKING_URI": "http://me:p%77@{host}"}, "Basic bWU6cHc="),
    ],
)
def test_uses_mlflow_credentials_of_the_training(
    far: Far, tracking: Tracking, environ: Mapping[str, str], header: str | None
) -> None:
    host = tracking.url.removeprefix("http://")
    far.environ = {name: text.replace("{host}", host) for name, text in environ.items()}
    far.environ["MLFLOW_WORKSPACE"] = "team"
    far.deliver(far.cpu(1.0))
    assert tracking.headers.get("Authorization") == header
    assert tracking.headers.get("X-MLFLOW-WORKSPACE") == "team"
    assert "pw" not in far.kept


def test_reads_the_credentials_file(
    far: Far, tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".mlflow").mkdir()
    text = "[mlflow]\nmlflow_tracking_username = me\nmlflow_tracking_password = pw\n"
    (tmp_path / ".mlflow" / "credentials").write_text(text)
    monkeypatch.setenv("HOME", str(tmp_path))
    far.deliver(far.cpu(1.0))
    assert tracking.headers.get("Authorization") == "Basic bWU6cHc="


def test_retries_after_a_rejected_password(far: Far, tracking: Tracking) -> None:
    far.deliver(far.cpu(1.0))
    tracking.faults.append((401, ""))
    with pytest.raises(Retry, match="MLFLOW_TRACKING_USERNAME"):
        far.deliver(far.cpu(2.0))
