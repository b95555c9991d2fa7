"""Elsewhere than on a Mac with Apple silicon, hardly anything is loaded."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from runvitals.monitoring.collectors.apple.probe import missing, probe
from runvitals.monitoring.collectors.base import Absent, Scope
from runvitals.monitoring.collectors.sources import LINUX, PORTABLE
from tests.monitoring.collectors.test_sources import HEAVY
from tests.patience import PATIENCE_S


def test_only_macs_with_apple_silicon_are_detected() -> None:
    assert missing("darwin", "arm64") is None
    assert missing("linux", "aarch64") == "no Mac: this system is linux"
    assert missing("win32", "AMD64") == "no Mac: this system is win32"
    reason = missing("darwin", "x86_64")
    assert reason is not None
    assert reason.startswith("this Python is built for x86_64: on a Mac with Apple silicon, use one ")


def test_linux_does_not_run_the_probe() -> None:
    assert "apple" in PORTABLE
    assert "apple" not in LINUX


@pytest.mark.skipif(sys.platform == "darwin", reason="this is a Mac")
def test_the_probe_imports_nothing_else() -> None:
    script = """
import sys
sys.path.insert(0, sys.argv[1])
from runvitals.monitoring.collectors.base import Absent, Scope
from runvitals.monitoring.collectors.apple.probe import probe
try:
    probe(Scope())
except Absent:
    print(*(name for name in sys.modules if ".apple" in name))
"""
    source = os.path.join(os.path.dirname(__file__), "..", "..", "..", "..", "src")
    command = [sys.executable, "-ISE", "-c", script, source]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert ran.stdout.split() == [
        "runvitals.monitoring.collectors.apple",
        "runvitals.monitoring.collectors.apple.probe",
    ]
    with pytest.raises(Absent, match="no Mac"):
        probe(Scope())


def test_the_collector_imports_nothing_heavy() -> None:
    script = """
import sys
sys.path.insert(0, sys.argv[1])
before = set(sys.modules)
import runvitals.monitoring.collectors.apple.collector
print(*set(sys.modules) - before)
"""
    source = os.path.join(os.path.dirname(__file__), "..", "..", "..", "..", "src")
    command = [sys.executable, "-ISE", "-c", script, source]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert not HEAVY.intersection(ran.stdout.split())
