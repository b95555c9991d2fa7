"""The probe for an NVIDIA driver, which loads nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from runvitals.monitoring.collectors.nvidia.probe import missing
from tests.isolated import printed


def test_absent_without_a_driver(tmp_path: Path) -> None:
    reason = missing(str(tmp_path), str(tmp_path), "linux")
    assert reason == "no NVIDIA driver: neither /dev/nvidiactl nor /proc/driver/nvidia exists"


def test_a_container_without_devices_gets_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "driver" / "nvidia").mkdir(parents=True)
    (tmp_path / "driver" / "nvidia" / "version").write_text("NVRM version: NVIDIA UNIX\n")
    assert "--gpus all" in (missing(str(tmp_path), str(tmp_path / "dev"), "linux") or "")


def test_the_control_device_suffices(tmp_path: Path) -> None:
    (tmp_path / "nvidiactl").touch()
    assert missing(str(tmp_path), str(tmp_path), "linux") is None


def test_wsl_without_the_library(tmp_path: Path) -> None:
    (tmp_path / "dxg").touch()
    assert "/usr/lib/wsl/lib" in (missing(str(tmp_path), str(tmp_path), "linux") or "")


def test_windows_and_macos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYSTEMROOT", str(tmp_path))
    monkeypatch.setenv("PROGRAMFILES", str(tmp_path))
    assert "nvml.dll" in (missing("/proc", "/dev", "win32") or "")
    assert "macOS" in (missing("/proc", "/dev", "darwin") or "")


def test_the_probe_imports_neither_ctypes_nor_the_collector(tmp_path: Path) -> None:
    program = (
        "from runvitals.monitoring.collectors.nvidia import probe\n"
        f"probe.missing({str(tmp_path)!r}, {str(tmp_path)!r})\n"
        "print([name for name in sys.modules if 'ctypes' in name or 'nvidia.' in name])\n"
    )
    package = "runvitals.monitoring.collectors.nvidia"
    assert printed(program) == f"['{package}.locations', '{package}.probe']\n"
