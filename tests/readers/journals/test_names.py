"""The same samples by any name of their keys."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from runvitals.cli import main
from runvitals.readers.journals.key_filter import KeyFilter
from runvitals.readers.journals.run_handle import open_run
from tests.readers.journals.journals import T0, Monitor
from tests.server.client import Client

SAMPLE = {
    "cpu.mean": 50.0,
    "gpu.0.gpu": 90.0,
    "gpu.1.gpu": 10.0,
    "gpu.0.memoryAllocatedBytes": 2e9,
    "memory_percent": 30.0,
    "memory.usedMB": 1000.0,
    "system.load1": 1.5,
}
IN_MLFLOW = {
    "system/cpu_utilization_percentage": 50.0,
    "system/gpu_0_utilization_percentage": 90.0,
    "system/gpu_1_utilization_percentage": 10.0,
    "system/gpu_0_memory_usage_megabytes": 2000.0,
    "system/system_memory_usage_percentage": 30.0,
    "system/system_memory_usage_megabytes": 1048.576,
    "system.load1": 1.5,
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    monitor = Monitor(tmp_path)
    monitor.sample(T0, SAMPLE)
    monitor.sample(T0 + 1000, SAMPLE)
    monitor.end(T0 + 2000)
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "keys"),
    [
        ("system/gpu_0_utilization_percentage", ["gpu.0.gpu"]),
        ("gpu_1_utilization_percentage", ["gpu.1.gpu"]),
        ("system/node-1/gpu_1_utilization_percentage", ["gpu.1.gpu"]),
        ("system/gpu_utilization_percentage", ["gpu.0.gpu", "gpu.1.gpu"]),
        ("gpu_utilization_percentage", ["gpu.0.gpu", "gpu.1.gpu"]),
        ("system/gpu_*_utilization_percentage", ["gpu.0.gpu", "gpu.1.gpu"]),
        ("system/gpu_0_memory_usage_gigabytes", ["gpu.0.memoryAllocatedBytes"]),
        ("system_memory_usage_percentage", ["memory_percent"]),
        ("system/cpu*", ["cpu.mean"]),
        ("system.gpu.0.gpu", ["gpu.0.gpu"]),
        ("system.gpu.*.gpu", ["gpu.0.gpu", "gpu.1.gpu"]),
        ("system.memory", ["memory_percent"]),
        ("system.load1", ["system.load1"]),
        ("system.*", ["system.load1"]),
        ("s*", ["system.load1"]),
        ("train/cpu_utilization_percentage", []),
    ],
)
def test_every_name_finds_its_samples(
    data: Path, pattern: str, keys: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert [key for key in SAMPLE if KeyFilter([pattern])(key)] == keys
    run = open_run("abc", str(data))
    assert sorted(run.metrics(pattern)) == sorted(keys)
    groups = Client(data).ask("runs/abc/metrics", keys=pattern)["groups"]
    assert sorted(key for group in groups for key in group["series"]) == sorted(keys)
    if keys:
        assert main(["export", "abc", "--keys", pattern, "--dir", str(data)]) == 0
        assert capsys.readouterr().out.splitlines()[0].split(",")[3:] == keys
    if len(keys) == 1 and "*" not in pattern:
        assert run.metrics()[pattern].key == keys[0]


def test_an_ambiguous_name_is_an_error_that_lists_the_keys(data: Path) -> None:
    with pytest.raises(LookupError, match=r"use one of gpu\.0\.gpu, gpu\.1\.gpu"):
        open_run("abc", str(data)).metrics()["system/gpu_utilization_percentage"]


def test_mlflow_names_have_mlflow_units(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = open_run("abc", str(data)).metrics(names="mlflow")
    assert {key: series.values[-1] for key, series in columns.items()} == pytest.approx(IN_MLFLOW)
    assert columns["gpu.0.gpu"].key == "system/gpu_0_utilization_percentage"
    assert columns["system/gpu_0_memory_usage_megabytes"].unit == "MB"

    assert main(["export", "abc", "--names", "mlflow", "--dir", str(data)]) == 0
    (row, _) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert {key: float(row[key]) for key in IN_MLFLOW} == pytest.approx(IN_MLFLOW)
    main(["export", "abc", "--names", "mlflow", "--format", "jsonl", "--dir", str(data)])
    assert json.loads(capsys.readouterr().out.splitlines()[0])["metrics"] == pytest.approx(IN_MLFLOW)


@pytest.mark.parametrize("how", [{}, {"max_points": 2}, {"resolution": "raw"}])
def test_the_api_has_mlflow_names_too(data: Path, how: dict[str, object]) -> None:
    client = Client(data)
    groups = client.ask("runs/abc/metrics", names="mlflow", **how)["groups"]
    values = {key: column[-1] for group in groups for key, column in group["series"].items()}
    assert values == pytest.approx(IN_MLFLOW)
    about = {series["key"]: series for series in client.ask("runs/abc/series", names="mlflow")}
    assert about.keys() == IN_MLFLOW.keys()
    memory = about["system/gpu_0_memory_usage_megabytes"]
    assert (memory["unit"], memory["last"], memory["subject"]) == ("MB", pytest.approx(2000.0), "GPU")
    ours = {series["key"]: series["mlflow"] for series in client.ask("runs/abc/series")}
    assert ours["gpu.0.memoryAllocatedBytes"] == {
        "name": "system/gpu_0_memory_usage_megabytes",
        "unit": "MB",
        "factor": 1e-6,
    }
    assert ours["system.load1"] is None
    reported = {
        statistic["key"]: statistic["mean"] for statistic in client.ask("runs/abc/statistics", names="mlflow")
    }
    assert reported == pytest.approx(IN_MLFLOW)
    table = client.get("/api/v1/runs/abc/metrics", params={"names": "mlflow", "format": "csv", **how})
    (row, _) = csv.DictReader(io.StringIO(table.text))
    assert {key: float(row[key]) for key in IN_MLFLOW} == pytest.approx(IN_MLFLOW)


def test_other_naming_schemes_are_rejected(data: Path) -> None:
    assert Client(data).get("/api/v1/runs/abc/metrics?names=wandb").status_code == 422
    assert Client(data).get("/api/v1/runs/abc/metrics?names=mlflow&after=").status_code == 422
    with pytest.raises(ValueError, match="expected runvitals or mlflow"):
        open_run("abc", str(data)).metrics(names="wandb")  # type: ignore[arg-type]


def test_mlflows_memory_is_that_of_the_host(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    monitor.sample(T0, {"memory_percent": 80.0, "host.memory_percent": 20.0})
    monitor.end(T0 + 1000)
    expected = {"memory_percent": 80.0, "system/system_memory_usage_percentage": 20.0}
    columns = open_run("abc", str(tmp_path)).metrics(names="mlflow")
    assert {key: series.values[-1] for key, series in columns.items()} == expected
    (group,) = Client(tmp_path).ask("runs/abc/metrics", names="mlflow", keys="memory_percent")["groups"]
    assert group["series"] == {"memory_percent": [80.0]}


@pytest.mark.parametrize("more", [[], ["--format", "jsonl"], ["--history"]])
def test_keys_that_match_nothing_are_an_error(
    data: Path, tmp_path: Path, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.csv"
    words = ["export", "abc", "--keys", "gpu.7.*", "nothing", "-o", str(out), "--dir", str(data), *more]
    assert main(words) == 1
    reported = capsys.readouterr().err
    assert "--keys gpu.7.* nothing: no key matches; the run has " in reported
    assert "cpu.mean, gpu.0.gpu" in reported or more == ["--history"]
    assert not out.exists()


def test_a_list_instead_of_a_key_is_rejected() -> None:
    with pytest.raises(TypeError, match=r"invalid key pattern \['cpu'\]: expected a string, not list"):
        KeyFilter([["cpu"]])  # type: ignore[list-item]
