"""The tools that are compared: how to configure each, and how to read its samples back from its records."""

from __future__ import annotations

import glob
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from runvitals.journal import frames
from runvitals.journal.reader import read_run
from runvitals.journal.records import Record

_MS = 1_000_000


class Sample(NamedTuple):
    """A sample: start and end of its time range in ns UTC, and its number of values."""

    begin_ns: int
    end_ns: int
    values: int


@dataclass(frozen=True)
class Peer:
    """A tool that monitors a training.

    Attributes:
        name: in `samplers.SAMPLERS`; `label`: in tables.
        companions: parts of the command lines of the processes that it must have.
        environ: environment variables for a sampling interval in seconds.
        recorded: reads the samples from the folder that the training process reported; None if the tool
            samples inside the training process, which then reports them itself.
        log_calls: number of logged rows to time.
    """

    name: str
    label: str
    companions: tuple[str, ...] = ()
    environ: Callable[[float], Mapping[str, str]] = lambda interval_s: {}
    recorded: Callable[[str], list[Sample]] | None = None
    log_calls: int = 0


def runvitals_samples(folder: str) -> list[Sample]:
    """Samples in the journal. Their time is that of the last value, truncated to milliseconds."""
    return [
        Sample(record.time_ms * _MS - 2 * _MS, record.time_ms * _MS + 3 * _MS, _host_values(record))
        for record in read_run(folder)
        if record.type == frames.SAMPLE
    ]


def _host_values(record: Record) -> int:
    """The number of values in a sample, without the metrics of the monitor itself."""
    pairs = zip(record.keys, record.values, strict=True)
    return sum(value == value and not key.startswith("monitor.") for key, value in pairs)


def wandb_samples(folder: str) -> list[Sample]:
    """Samples in the `.wandb` file, which is complete once the run is finished."""
    from wandb.proto import wandb_internal_pb2

    samples = []
    for path in glob.glob(f"{folder}/*.wandb"):
        for data in leveldb_records(Path(path).read_bytes()):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            if record.WhichOneof("record_type") == "stats":
                stamp = record.stats.timestamp
                time_ns = stamp.seconds * 1_000_000_000 + stamp.nanos
                samples.append(Sample(time_ns - 10 * _MS, time_ns + 10 * _MS, len(record.stats.item)))
    return samples


def wandb_rows(folder: str) -> int:
    """The number of history rows in the `.wandb` files."""
    from wandb.proto import wandb_internal_pb2

    rows = 0
    for path in glob.glob(f"{folder}/*.wandb"):
        for data in leveldb_records(Path(path).read_bytes()):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            rows += record.WhichOneof("record_type") == "history"
    return rows


def leveldb_records(data: bytes) -> Iterator[bytes]:
    """The records of a `.wandb` file: a 7-byte header, then a LevelDB log, 32 KiB blocks of fragments with
    checksum (4 bytes), length (2) and type (1 full, 2 first, 3 middle, 4 last).
    """
    block, head = 32768, struct.Struct("<IHB")
    position, pieces = 7, b""
    while position + head.size <= len(data):
        left = block - position % block
        if left < head.size:
            position += left
            continue
        _, length, kind = head.unpack_from(data, position)
        position += head.size
        if kind == 0 or position + length > len(data):
            return
        pieces += data[position : position + length]
        position += length
        if kind in (1, 4):
            yield pieces
            pieces = b""


def _wandb_environ(interval_s: float) -> dict[str, str]:
    return {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_ERROR_REPORTING": "false"}


def _mlflow_environ(interval_s: float) -> dict[str, str]:
    return {
        "MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL": str(interval_s),
        "MLFLOW_ALLOW_FILE_STORE": "true",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "true",
    }


_WANDB_PROCESSES = ("wandb-core", "wandb-symon")

NOTHING = Peer("nothing", "bare training process")
RUNVITALS = Peer(
    "runvitals",
    "runvitals",
    companions=("runvitals-monitor",),
    recorded=runvitals_samples,
    log_calls=2000,
)
WANDB = Peer("wandb", "wandb offline", _WANDB_PROCESSES, _wandb_environ, wandb_samples, log_calls=2000)
WANDB_TREE = Peer(
    "wandb-tree", "wandb offline, process tree on", _WANDB_PROCESSES, _wandb_environ, wandb_samples
)
MLFLOW = Peer("mlflow-sqlite", "MLflow, SQLite store", environ=_mlflow_environ, log_calls=200)
MLFLOW_FILES = Peer("mlflow-files", "MLflow, file store", environ=_mlflow_environ, log_calls=200)
NVITOP = Peer("nvitop", "nvitop collector thread, no GPU")
PSUTIL = Peer("psutil", "psutil thread")

PEERS = (RUNVITALS, WANDB, MLFLOW, MLFLOW_FILES, NVITOP, PSUTIL)
