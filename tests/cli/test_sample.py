from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runvitals.cli import main
from runvitals.model.metrics import DEFINITIONS
from tests.monitoring.collectors.exporters import Exporter, ok
from tests.monitoring.collectors.graphcore.ipus import Library, card
from tests.monitoring.collectors.trees import BARE_VM, plant
from tests.monitoring.collectors.vendors.machines import pci, tool
from tests.patience import PATIENCE_S


def reading(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    assert main(["sample", "--json", *options]) == 0
    value: dict[str, Any] = json.loads(capsys.readouterr().out)
    return value


def test_json_of_one_reading(capsys: pytest.CaptureFixture[str]) -> None:
    value = reading(capsys)
    metrics = value["metrics"]
    assert {"cpu", "cpu.mean", "memory_percent", "proc.memory.rssMB", "disk./.usagePercent"} <= set(metrics)
    assert 0 < metrics["memory_percent"] <= 100
    assert [key for key in metrics if DEFINITIONS.find(key) is None] == []
    assert value["sources"]["cpu"] == {"state": "on"}


def test_host_root_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text(
        "MemTotal:        1000 kB\nMemFree:  100 kB\nMemAvailable:     250 kB\n"
    )
    assert reading(capsys, "--host-root", str(tmp_path))["metrics"]["memory_percent"] == 75.0


def test_missing_path_is_absent_with_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    value = reading(capsys, "--disk-paths", "/no/such/place")
    assert not any(key.startswith("disk./no") for key in value["metrics"])
    assert "/no/such/place" in str(value["sources"]["filesystem"]["reason"])


def test_text_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sample"]) == 0
    lines = capsys.readouterr().out.split("\n")
    (line,) = (line for line in lines if line.startswith("  memory_percent "))
    assert line.endswith(" %")
    assert lines.index("Memory") < lines.index(line) < lines.index("Disk") < lines.index("Sources")


# -- accelerators, as far as programs and files make them

HL_SMI = "0, UUID-0, HL-325L, 1.2, 131072 MiB, 65536 MiB, 65536 MiB, 200 W, 800 W, 30 C, 5 %\n"
ROCM_SMI = {"card0": {"GPU use (%)": "64", "Card series": "Instinct MI210", "PCI Bus": "0000:2F:00.0"}}


@pytest.fixture
def accelerators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The root folder of a host with a Gaudi, an AMD GPU known to rocm-smi only, and two IPUs."""
    library = Library(tmp_path)
    library.answer(card(0, None), card(11, 4_000_000))
    tool(tmp_path, monkeypatch, "hl-smi", HL_SMI)
    tool(tmp_path, monkeypatch, "rocm-smi", json.dumps(ROCM_SMI))
    monkeypatch.setenv("PYTHONPATH", str(library.folder))
    monkeypatch.setattr(sys, "path", sys.path.copy())
    cards = pci("0000:9a:00.0", "1da3") | pci("0000:1a:00.0", "1d95") | pci("0000:2f:00.0", "1002", "03")
    plant(tmp_path / "host", BARE_VM | cards)
    return str(tmp_path / "host")


def test_devices_have_headings(accelerators: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sample", "--host-root", accelerators]) == 0
    text = capsys.readouterr().out
    sys.modules.pop("gcipuinfo")
    lines = [" ".join(line.split()) for line in text.split("\n")]
    for heading, line in (
        ("GPU 0: Instinct MI210, 0000:2f:00.0", "gpu.0.gpu 64 %"),
        ("GPU 1: HL-325L", "gpu.1.memoryAllocatedBytes 64 GiB"),
        ("IPU 0: C2, 0000:1a:00.0", "ipu.0.average board temp (C) 31.5 °C"),
        ("IPU 11: C2, 0000:25:00.0", "ipu.11.speed (GT/s) 8 GT/s"),
    ):
        assert heading in lines, text
        assert line in lines[lines.index(heading) :], text
    assert "graphcore" in next(line for line in lines if line.startswith("working: "))
    assert any(line.startswith("nvidia no NVIDIA driver: ") for line in lines)


def test_devices_are_in_the_json_output(accelerators: str, capsys: pytest.CaptureFixture[str]) -> None:
    value = reading(capsys, "--host-root", accelerators)
    sys.modules.pop("gcipuinfo")
    assert value["metrics"]["gpu.1.gpu"] == 5.0
    assert [each["id"] for each in value["machine"]["ipu"]["devices"]] == ["0", "11"]
    assert [each["index"] for each in value["machine"]["accelerator_gaudi"]] == [1]


def test_an_impossible_reading_is_left_out_with_the_reason(
    accelerators: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tool(tmp_path, monkeypatch, "hl-smi", HL_SMI.replace("5 %", "184213 %"))
    value = reading(capsys, "--host-root", accelerators)
    sys.modules.pop("gcipuinfo")
    assert "gpu.1.gpu" not in value["metrics"]
    assert value["metrics"]["gpu.1.temp"] == 30.0
    assert "gpu.1.gpu: 184213 is left out: expected 0 to 100 %" in value["sources"]["gaudi"]["reason"]


def test_what_the_first_of_two_readings_has_left_out_keeps_its_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use = 'DCGM_FI_DEV_GPU_UTIL{gpu="%d",UUID="GPU-%d"} %d\n'
    text = use % (0, 0, 37) + use % (1, 1, 184213)
    # It is asked every few seconds.
    with Exporter(ok(text, "Content-Type: text/plain; version=0.0.4")) as exporter:
        monkeypatch.setenv("RUNVITALS_DCGM_EXPORTER", exporter.url)
        monkeypatch.setenv("RUNVITALS_COLLECTORS", "dcgm")
        value = reading(capsys)
    assert value["metrics"]["gpu.0.gpu"] == 37.0
    assert "gpu.1.gpu: 184213 is left out" in value["sources"]["dcgm"]["reason"]


# -- again and again


def start(*options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "runvitals", "sample", "--watch", "0.1", *options]
    environ = {**os.environ, "RUNVITALS_COLLECTORS": "memory,load", "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(command, env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_repeated_readings_as_json_lines() -> None:
    with start("--json") as running:
        assert running.stdout is not None
        values = [json.loads(running.stdout.readline()) for _ in range(3)]
        running.send_signal(signal.SIGINT)
        assert running.wait(PATIENCE_S) == 130
        assert running.stderr is not None
        assert running.stderr.read() == ""
    times = [value["t"] for value in values]
    assert times == sorted(set(times))
    # The load is told every 5 s, and is shown meanwhile.
    assert all({"memory_percent", "system.load1"} <= set(value["metrics"]) for value in values)


def test_repeated_readings_as_text() -> None:
    with start() as running:
        assert running.stdout is not None
        text = [running.stdout.readline() for _ in range(40)]
        running.stdout.close()  # the reader has enough
        assert running.wait(PATIENCE_S) == 0
    assert sum(line.endswith(" UTC\n") for line in text) > 1
    assert not any("\x1b" in line for line in text)


@pytest.mark.parametrize("seconds", ["0", "-1", "3601", "soon", "nan"])
def test_invalid_interval(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["sample", f"--watch={seconds}"])
    assert ended.value.code == 2
    assert "--watch" in capsys.readouterr().err
