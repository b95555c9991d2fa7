"""IPUs are detected on PCI, by their device file, or by the configuration of an IPU-Machine's partition."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from runvitals.monitoring.collectors.base import Absent, Scope
from runvitals.monitoring.collectors.graphcore.probe import NO_MODULE, VARIABLES, find_module, probe
from runvitals.monitoring.collectors.sources import probe_all
from tests.isolated import printed
from tests.monitoring.collectors.graphcore.ipus import Library
from tests.monitoring.collectors.test_sources import HEAVY
from tests.monitoring.collectors.trees import BARE_VM, plant, put
from tests.monitoring.collectors.vendors.machines import pci

CARD = pci("0000:1a:00.0", "1d95")


@pytest.fixture(autouse=True)
def _no_partition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PYTHONPATH", raising=False)


def test_absent_without_ipus(tmp_path: Path) -> None:
    with pytest.raises(Absent, match="no Graphcore IPU: no PCI device of vendor 1d95, no /dev/ipu0, "):
        probe(plant(tmp_path, BARE_VM))


@pytest.mark.parametrize("sign", ["card", "node", "variable", "folder"])
def test_any_sign_of_ipus_starts_the_search_for_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sign: str
) -> None:
    tree = BARE_VM | {"card": CARD, "node": {"dev/ipu0": ""}}.get(sign, {})
    if sign == "variable":
        monkeypatch.setenv("IPUOF_VIPU_API_PARTITION_ID", "p1")
    if sign == "folder":
        put(tmp_path, "home/.ipuof.conf.d/p1_ipuof.conf", "{}")
    with pytest.raises(Absent) as absent:
        probe(plant(tmp_path / "host", tree))
    assert str(absent.value) == NO_MODULE


def test_the_library_is_found_in_site_packages_and_on_pythonpath(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library(tmp_path)
    probed = probe_all(plant(tmp_path / "host", CARD), {"graphcore"}, [str(library.folder)])
    assert [collector.name for collector in probed.collectors] == ["graphcore"]
    monkeypatch.setenv("PYTHONPATH", f"/nowhere{os.pathsep}{library.folder}")
    assert probe(plant(tmp_path / "other", CARD)).name == "graphcore"
    assert "gcipuinfo" not in sys.modules  # only the thread imports it


def test_an_extension_module_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "sdk/python/gcipuinfo.so", "")
    put(tmp_path, "other/gcipuinfo_tools.py", "")
    monkeypatch.chdir(tmp_path / "sdk/python")  # of a cloned repository, perhaps
    folders = ["", ".", "../python", "/nowhere", f"{tmp_path}/other", f"{tmp_path}/sdk/python"]
    assert find_module(folders) == f"{tmp_path}/sdk/python"
    assert find_module(folders[:-1]) is None


def test_the_probe_imports_nothing_else() -> None:
    script = """
from runvitals.monitoring.collectors.base import Scope
from runvitals.monitoring.collectors.sources import probe_all
probe_all(Scope(host_root="/nowhere"), names={"graphcore"})
print(*(name for name in sys.modules if "graphcore" in name or "ctypes" in name))
"""
    assert printed(script).split() == [
        "runvitals.monitoring.collectors.graphcore", "runvitals.monitoring.collectors.graphcore.probe",
    ]  # fmt: skip


def test_a_scope_has_no_folders_by_default() -> None:
    assert Scope().site_folders == ()


def test_the_collector_imports_nothing_heavy() -> None:
    script = """
before = set(sys.modules)
import runvitals.monitoring.collectors.graphcore.collector
print(*set(sys.modules) - before)
"""
    assert not HEAVY.intersection(printed(script).split())
