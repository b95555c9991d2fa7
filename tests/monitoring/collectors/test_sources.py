"""Selection of sources, those of other packages too, and isolation of failing ones."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.monitoring.collectors.base import Scope, Tick
from runvitals.monitoring.collectors.sources import LINUX, PORTABLE, built_in, load, probe_all, third_party
from tests.isolated import printed
from tests.monitoring.collectors.trees import BARE_VM, INFINIBAND, RAPL, plant, put

# Modules that the monitor must not import: each costs memory and start time.
HEAVY = {
    *("collections.abc", "contextlib", "dataclasses", "enum", "functools", "json", "logging"),
    *("pathlib", "re", "socket", "subprocess", "threading", "typing"),
}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    """A folder of installed packages, which tests may add to the module path."""
    path, modules = sys.path.copy(), set(sys.modules)
    yield tmp_path / "site-packages"
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def install(site: Path, package: str, code: str, entry_points: str) -> None:
    put(site, f"{package}.py", code)
    put(site, f"{package}-1.0.dist-info/entry_points.txt", entry_points)


FRIDGE = """
class Fridge:
    name = "fridge"
    def __init__(self, scope):
        self.pids = scope.pids
    def sample(self, tick):
        tick.gauges["fridge.temp"] = 4.5
def probe(scope):
    return Fridge(scope)
"""
ENTRY = "[console_scripts]\nfridge = fridge:main\n\n[runvitals.collectors]\nfridge = fridge:probe\n"


def test_available_sources_and_reasons_for_the_others(tmp_path: Path) -> None:
    collectors = probe_all(plant(tmp_path, INFINIBAND))
    names = [collector.name for collector in collectors.collectors]
    assert {"cpu", "load", "pressure", "memory", "disk", "filesystem", "network", "infiniband"} <= set(names)
    assert (
        collectors.reasons["energy"]
        == f"{tmp_path}/sys/class/powercap cannot be listed: No such file or directory"
    )
    assert collectors.reasons["ena"] == "no network interface uses the driver ena"
    assert (
        collectors.reasons["infiniband"] == "network.ib.i40iw0.1: no counters"
    )  # the other ports have counters
    assert set(names) | collectors.reasons.keys() == set(LINUX)


def test_only_the_selected_sources_are_probed(tmp_path: Path) -> None:
    collectors = probe_all(plant(tmp_path, RAPL), names={"energy", "memory"})
    assert [collector.name for collector in collectors.collectors] == ["memory", "energy"]
    assert collectors.reasons == {}


def test_a_source_that_is_known_to_be_absent_is_not_probed(tmp_path: Path) -> None:
    scope = plant(tmp_path, RAPL)
    collectors = probe_all(scope, names={"energy", "memory"}, absent={"energy": "known"})
    assert [collector.name for collector in collectors.collectors] == ["memory"]
    assert collectors.reasons == {"energy": "known"}


def test_every_collector_has_the_name_of_its_source(tmp_path: Path) -> None:
    scope = plant(tmp_path, BARE_VM)
    for name in LINUX:
        for collector in probe_all(scope, names={name}).collectors:
            assert collector.name == name


def test_a_failing_probe_does_not_affect_the_others(tmp_path: Path) -> None:
    collectors = probe_all(plant(tmp_path, BARE_VM | {"proc/meminfo": "MemTotal: ? kB\nMemFree: ? kB\n"}))
    assert collectors.reasons["memory"].startswith("the probe failed: ValueError")
    assert "load" in [collector.name for collector in collectors.collectors]


def test_other_systems_use_psutil() -> None:
    assert built_in("linux") is LINUX
    assert built_in("darwin") is PORTABLE
    assert built_in("win32") is PORTABLE
    assert PORTABLE.keys() - {"apple"} < LINUX.keys()
    assert all(callable(load(probe_path)) for probe_path in (*PORTABLE.values(), *LINUX.values()))


def test_a_collector_of_another_package_is_found_and_works(tmp_path: Path, site: Path) -> None:
    install(site, "fridge", FRIDGE, ENTRY)
    collectors = probe_all(plant(tmp_path / "host", BARE_VM, pids=[7]), {"fridge"}, [str(site)])
    assert [collector.name for collector in collectors.collectors] == ["fridge"]
    tick = Tick(1.0)
    collectors.collectors[0].sample(tick)
    assert tick.gauges == {"fridge.temp": 4.5}


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (
            "import nowhere_to_be_found",
            "the probe failed: ModuleNotFoundError: No module named 'nowhere_to_be_found'",
        ),
        ("def probe(scope): return 1 / 0", "the probe failed: ZeroDivisionError: division by zero"),
        ("def probe(scope): return None", "not available on this machine"),
        (
            "def probe(scope): return 5",
            "the probe returned an invalid collector: fridge:probe gave 5, which lacks `name` or `sample()`",
        ),
        ("other = 1", "the probe failed: AttributeError: module 'fridge' has no attribute 'probe'"),
    ],
)
def test_errors_of_another_packages_collector_are_reported(
    tmp_path: Path, site: Path, code: str, reason: str
) -> None:
    install(site, "fridge", code, ENTRY)
    collectors = probe_all(plant(tmp_path / "host", BARE_VM), {"fridge", "load"}, [str(site)])
    assert [collector.name for collector in collectors.collectors] == ["load"]
    assert collectors.reasons == {"fridge": reason}


def test_a_built_in_source_cannot_be_replaced(tmp_path: Path, site: Path) -> None:
    install(site, "fridge", FRIDGE, "[runvitals.collectors]\ncpu = fridge:probe\n")
    collectors = probe_all(plant(tmp_path / "host", BARE_VM), {"cpu"}, [str(site)])
    assert type(collectors.collectors[0]).__module__ == "runvitals.monitoring.collectors.host.cpu"
    assert collectors.reasons == {"cpu (fridge:probe)": "a built-in collector has this name"}


def test_formats_of_entry_points(site: Path) -> None:
    put(
        site,
        "one-1.dist-info/entry_points.txt",
        "[runvitals.collectors]\n# a note\n ; another\na.b = one.deep:probe [extra]\n",
    )
    put(
        site,
        "two-1.dist-info/entry_points.txt",
        "[ runvitals.collectors ]\nc=two:Class\n[other]\nd = two:no\n",
    )
    put(site, "three-1.dist-info/METADATA", "Name: three\n")
    put(site, "four.egg-info/entry_points.txt", "[runvitals.collectors]\ne = four:probe\n")
    assert third_party([str(site)]) == ({"a.b": "one.deep:probe", "c": "two:Class"}, {})


def test_invalid_entry_points_are_reported(site: Path) -> None:
    put(
        site,
        "one-1.dist-info/entry_points.txt",
        "[runvitals.collectors]\nbad = one.two\nworse = 1:x\ngood = one:x\n",
    )
    put(site, "two-1.dist-info/entry_points.txt", "[runvitals.collectors]\ngood = two:x\n")
    probe_paths, problems = third_party([str(site)])
    assert probe_paths == {"good": "one:x"}
    assert problems == {
        "bad (one-1.dist-info)": "entry point 'one.two' is not of the form package.module:probe",
        "worse (one-1.dist-info)": "entry point '1:x' is not of the form package.module:probe",
        "good (two:x)": "one:x has this name already",
    }


def test_missing_folders_have_no_collectors(tmp_path: Path) -> None:
    assert third_party([str(tmp_path / "nowhere")]) == ({}, {})
    put(tmp_path, "file", "")
    assert third_party([str(tmp_path / "file")])[1] == {
        f"{tmp_path}/file": "cannot be searched for collectors: Not a directory"
    }


def test_the_monitor_imports_nothing_heavy() -> None:
    script = """
before = set(sys.modules)
from runvitals.monitoring.collectors.base import Scope, Tick
from runvitals.monitoring.collectors.sources import probe_all
for collector in probe_all(Scope(pids=[1])).collectors:
    collector.sample(Tick(1.0))
print(*set(sys.modules) - before)
"""
    assert not HEAVY.intersection(printed(script).split())


def test_this_machine() -> None:
    collectors = probe_all(Scope(pids=[os.getpid()]))
    tick = Tick(time.monotonic() + 1.0)
    for collector in collectors.collectors:
        collector.sample(tick)
    assert tick.gauges
    assert all(
        value == value and abs(value) < 1e18 for value in (*tick.gauges.values(), *tick.counters.values())
    )
    assert all(type(value) is float for value in (*tick.gauges.values(), *tick.counters.values()))
