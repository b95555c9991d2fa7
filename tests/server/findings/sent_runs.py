"""Runs of two hours, and how other clients send them: at once, with the times of their measurements."""

from __future__ import annotations

import json
import struct
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SECONDS = 2 * 3600
INTERVAL_S, STEP_S = 15, 6
DEVICES = range(4)


@dataclass
class SentRun:
    """What was measured and logged, by seconds from its start."""

    kind: str
    start_s: float
    t: Floats = field(default_factory=lambda: np.arange(2.0, SECONDS, INTERVAL_S))

    def __post_init__(self) -> None:
        noise = np.random.default_rng(zlib.crc32(self.kind.encode()))
        count, works = len(self.t), self.t > 90
        self.steps = np.arange(90.0, SECONDS, STEP_S)
        share = np.linspace(0, 1, len(self.steps))
        self.loss = 1.5 + 3 * np.exp(-5 * share) + noise.normal(0, 0.03, len(share))
        load = np.where(works, 94.0, 0.0)
        self.cpu = np.where(works, 28.0, 3.0) + noise.uniform(0, 1, count)
        self.memory, self.disk = np.full(count, 30.0), np.full(count, 55.0)
        used = dict.fromkeys(DEVICES, works)
        if self.kind == "not_finite":
            self.loss[len(share) // 2 :] = np.nan
        elif self.kind == "diverged":
            self.loss += np.clip(share - 0.5, 0, 1) * 80
        elif self.kind == "input_bound":
            load, self.cpu = np.where(works, 35.0, 0.0), np.where(works, 98.0, 3.0)
        elif self.kind == "half_unused":
            used |= dict.fromkeys((2, 3), np.zeros(count, dtype=np.bool_))
        elif self.kind == "fills_disk":
            self.disk = 50 + 49.5 * self.t / SECONDS
        elif self.kind == "leaks":
            self.memory = 20 + 60 * self.t / SECONDS
        self.busy = [np.clip(used[each] * (load + noise.normal(0, 2, count)), 0, 100) for each in DEVICES]
        self.held = [np.where(used[each], 80.0, 0.5) for each in DEVICES]
        self.watts = [40 + 2.4 * busy for busy in self.busy]

    def end_s(self) -> float:
        return self.start_s + SECONDS


def wandb_values(run: SentRun, row: int) -> dict[str, float]:
    """The system metrics of one moment, as the client of W&B names them."""
    values = {
        "cpu": run.cpu[row],
        "memory_percent": run.memory[row],
        "proc.memory.rssMB": 640 * run.memory[row],
        "proc.memory.percent": run.memory[row],
        "disk./.usagePercent": run.disk[row],
        "network.recv": 3e7 * row,
        "network.sent": 1e7 * row,
    }
    for device in DEVICES:
        prefix = f"gpu.{device}."
        values[prefix + "gpu"] = run.busy[device][row]
        values[prefix + "memoryAllocated"] = run.held[device][row]
        values[prefix + "powerWatts"] = run.watts[device][row]
        values[prefix + "powerPercent"] = run.watts[device][row] / 3
        values[prefix + "temp"] = 60.0
    return values


def write_wandb_folder(run: SentRun, run_id: str, parent: Path) -> Path:
    """Write what the client keeps of a run without a connection, for `wandb sync`."""
    from wandb.proto import wandb_internal_pb2 as messages

    folder = parent / f"offline-run-20260101_000000-{run_id}"
    (folder / "files").mkdir(parents=True)
    begin = messages.RunRecord(run_id=run_id, project="judged", host="trainer")
    begin.start_time.FromMicroseconds(int(run.start_s * 1e6))
    records = [messages.Record(run=begin)]
    moments = [(at, False, row) for row, at in enumerate(run.t)]
    moments += [(at, True, row) for row, at in enumerate(run.steps)]
    for at, is_step, row in sorted(moments):
        if is_step:
            logged = {
                "train/loss": run.loss[row],
                "_timestamp": run.start_s + at,
                "_runtime": at,
                "_step": row,
            }
            history = messages.HistoryRecord(step=messages.HistoryStep(num=row))
            for key, value in logged.items():
                history.item.add(key=key, value_json=json.dumps(value))
            records.append(messages.Record(history=history))
        else:
            stats = messages.StatsRecord(stats_type=messages.StatsRecord.SYSTEM)
            stats.timestamp.FromMicroseconds(int((run.start_s + at) * 1e6))
            for key, value in wandb_values(run, row).items():
                stats.item.add(key=key, value_json=json.dumps(float(value)))
            records.append(messages.Record(stats=stats))
    records.append(messages.Record(exit=messages.RunExitRecord(exit_code=0, runtime=SECONDS)))
    (folder / f"run-{run_id}.wandb").write_bytes(b"".join(_blocks(records)))
    return folder


def _blocks(records: Sequence[Message]) -> Iterator[bytes]:
    """Yield a log in the format of LevelDB, with W&B's header: records are cut at blocks of 32 KiB."""
    yield struct.pack("<4sHB", b":W&B", 0xBEE1, 0)
    size = 7
    for record in records:
        rest, is_first = record.SerializeToString(), True
        while rest or is_first:
            left = 32768 - size % 32768
            if left < 7:
                yield bytes(left)
                size += left
                continue
            part, rest = rest[: left - 7], rest[left - 7 :]
            kind = (2 if rest else 1) if is_first else (3 if rest else 4)
            checksum = zlib.crc32(part, zlib.crc32(bytes([kind])))
            yield struct.pack("<IHB", checksum, len(part), kind) + part
            size += 7 + len(part)
            is_first = False


def mlflow_values(run: SentRun, row: int) -> dict[str, float]:
    """The system metrics of one moment, as MLflow's client names them."""
    values = {
        "cpu_utilization_percentage": run.cpu[row],
        "system_memory_usage_percentage": run.memory[row],
        "disk_usage_percentage": run.disk[row],
        "network_receive_megabytes": 30.0 * row,
        "network_transmit_megabytes": 10.0 * row,
    }
    for device in DEVICES:
        prefix = f"gpu_{device}_"
        values[prefix + "utilization_percentage"] = run.busy[device][row]
        values[prefix + "memory_usage_percentage"] = run.held[device][row]
        values[prefix + "power_usage_watts"] = run.watts[device][row]
        values[prefix + "power_usage_percentage"] = run.watts[device][row] / 3
    return {f"system/{name}": float(value) for name, value in values.items()}


def send_with_mlflow(runs: Sequence[SentRun]) -> dict[str, str]:
    """Send runs with MLflow's client; return their ids by kind."""
    from mlflow.entities import Metric
    from mlflow.tracking import MlflowClient

    client = MlflowClient()
    experiment = client.create_experiment("judged by mlflow")
    ids = {}
    for run in runs:
        run_id = client.create_run(experiment, start_time=int(run.start_s * 1000)).info.run_id
        metrics = [
            Metric("loss", float(run.loss[row]), int((run.start_s + at) * 1000), row)
            for row, at in enumerate(run.steps)
        ]
        for row, at in enumerate(run.t):
            time_ms = int((run.start_s + at) * 1000)
            metrics += [Metric(name, value, time_ms, row) for name, value in mlflow_values(run, row).items()]
        for first in range(0, len(metrics), 1000):
            client.log_batch(run_id, metrics=metrics[first : first + 1000])
        client.set_terminated(run_id, "FINISHED", int(run.end_s() * 1000))
        ids[run.kind] = run_id
    return ids


def send_with_opentelemetry(runs: Sequence[SentRun], url: str) -> dict[str, str]:
    """Send runs with OpenTelemetry's exporter, some minutes in each request; return their ids by kind."""
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics.export import (
        Gauge,
        Metric,
        MetricsData,
        NumberDataPoint,
        ResourceMetrics,
        ScopeMetrics,
    )
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    exporter = OTLPMetricExporter(f"{url}/v1/metrics")
    for run in runs:
        start_ns = int(run.start_s * 1e9)

        def point(at: float, value: float, start_ns: int = start_ns, **labels: str) -> NumberDataPoint:
            time_ns = start_ns + int(at * 1e9)
            return NumberDataPoint(labels, start_ns, time_ns, float(value))

        def gauge(name: str, points: Sequence[NumberDataPoint]) -> Metric:
            return Metric(name, "", "", Gauge(points))

        resource = Resource(
            {"service.name": "judged", "service.instance.id": run.kind, "host.name": "trainer"}
        )
        for rows in np.array_split(np.arange(len(run.t)), 20):
            until = run.t[rows[-1]] + INTERVAL_S
            steps = np.flatnonzero((run.steps >= run.t[rows[0]]) & (run.steps < until))
            per_device: Mapping[str, Sequence[Floats]] = {
                "hw.gpu.utilization": run.busy, "hw.gpu.memory.utilization": run.held,
            }  # fmt: skip
            metrics = [
                gauge(
                    name,
                    [
                        point(run.t[row], columns[device][row] / 100, **{"hw.id": str(device)})
                        for device in DEVICES
                        for row in rows
                    ],
                )
                for name, columns in per_device.items()
            ]
            for name, column, labels in (
                ("process.cpu.utilization", run.cpu, {}),
                ("system.memory.utilization", run.memory, {"system.memory.state": "used"}),
                ("system.filesystem.utilization", run.disk, {"system.filesystem.mountpoint": "/"}),
            ):
                metrics.append(gauge(name, [point(run.t[row], column[row] / 100, **labels) for row in rows]))
            if len(steps):
                metrics.append(
                    gauge("train/loss", [point(run.steps[step], run.loss[step]) for step in steps])
                )
            scope = ScopeMetrics(InstrumentationScope("judged"), metrics, "")
            exporter.export(MetricsData([ResourceMetrics(resource, [scope], "")]))
    exporter.shutdown()
    return {run.kind: f"judged-{run.kind}" for run in runs}


if __name__ == "__main__":  # MLflow's client reads its settings from the environment
    start_s, *kinds = sys.argv[1:]
    print(json.dumps(send_with_mlflow([SentRun(kind, float(start_s)) for kind in kinds])))
