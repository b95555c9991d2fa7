from __future__ import annotations

import json
from pathlib import Path

import pytest

from runvitals.catalog import CATALOG
from runvitals.cli import main


def reading(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, dict[str, float]]:
    assert main(["sample", "--json", *options]) == 0
    value: dict[str, dict[str, float]] = json.loads(capsys.readouterr().out)
    return value


def test_one_reading_of_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    value = reading(capsys)
    metrics = value["metrics"]
    assert {"cpu", "cpu.mean", "memory_percent", "proc.memory.rssMB", "disk./.usagePercent"} <= set(metrics)
    assert 0 < metrics["memory_percent"] <= 100
    assert [key for key in metrics if CATALOG.find(key) is None] == []
    assert value["sources"]["cpu"] == {"state": "on"}


def test_of_another_root(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text(
        "MemTotal:        1000 kB\nMemFree:  100 kB\nMemAvailable:     250 kB\n"
    )
    assert reading(capsys, "--host-root", str(tmp_path))["metrics"]["memory_percent"] == 75.0


def test_a_path_that_does_not_exist_is_absent_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    value = reading(capsys, "--disk-paths", "/no/such/place")
    assert not any(key.startswith("disk./no") for key in value["metrics"])
    assert "/no/such/place" in str(value["sources"]["filesystem"]["reason"])


def test_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sample"]) == 0
    (line,) = (line for line in capsys.readouterr().out.split("\n") if line.startswith("memory_percent "))
    assert line.endswith("%")
