"""Elsewhere than on a Mac with Apple silicon, hardly anything is loaded."""

from __future__ import annotations

import sys

import pytest

from runvitals.monitoring.collectors.apple.probe import missing, probe
from runvitals.monitoring.collectors.base import Absent, Scope
from runvitals.monitoring.collectors.sources import LINUX, PORTABLE
from tests.isolated import printed
from tests.monitoring.collectors.test_sources import HEAVY


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
from runvitals.monitoring.collectors.base import Absent, Scope
from runvitals.monitoring.collectors.apple.probe import probe
try:
    probe(Scope())
except Absent:
    print(*(name for name in sys.modules if ".apple" in name))
"""
    assert printed(script).split() == [
        "runvitals.monitoring.collectors.apple",
        "runvitals.monitoring.collectors.apple.probe",
    ]
    with pytest.raises(Absent, match="no Mac"):
        probe(Scope())


def test_the_collector_imports_nothing_heavy() -> None:
    script = """
before = set(sys.modules)
import runvitals.monitoring.collectors.apple.collector
print(*set(sys.modules) - before)
"""
    assert not HEAVY.intersection(printed(script).split())
