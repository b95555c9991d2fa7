"""Unknown output of each vendor's tool: an error with its first lines, never an empty list."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import pytest

from runvitals.monitoring.collectors import vendors
from runvitals.monitoring.collectors.base import Tick
from runvitals.monitoring.collectors.plumbing.tool import StillFailing, ToolFailed
from runvitals.monitoring.collectors.vendors.adapter import Smi, Vendor
from tests.monitoring.collectors.plumbing.test_tool import soon
from tests.monitoring.collectors.vendors.machines import tool, values

MODULES = [
    importlib.import_module(f"{vendors.__name__}.{each.name}")
    for each in pkgutil.iter_modules(vendors.__path__)
    if each.name != "grids"  # a deprecated name, which warns
]
VENDORS = {
    value.name: value for module in MODULES for value in vars(module).values() if isinstance(value, Vendor)
}
TABLE = """\
+--------------------------+--------------+
| NEW-SMI 9.0              | Build 77     |
|--------------------------+--------------|
| Unit   Title             | Warmth Busy  |
|==========================+==============|
| 0      Something         | 40     7     |
+--------------------------+--------------+
"""


def test_all_vendors_are_found() -> None:
    assert len(VENDORS) >= 13


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        (TABLE, "'NEW-SMI 9.0 | Build 77'"),
        ('{"units": [{"warmth": 40, "busy": 7}]}\n', "units"),
        ("unit, warmth\n0, 40\n", "'unit, warmth', '0, 40'"),
        ("No devices were found\n", "'No devices were found'"),
        ("", "nothing"),
    ],
    ids=["table", "JSON", "CSV", "none", "nothing"],
)
@pytest.mark.parametrize("name", VENDORS)
def test_unknown_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, output: str, shown: str
) -> None:
    vendor = VENDORS[name]
    tool(tmp_path, monkeypatch, vendor.programs[0], output)
    smi = Smi(vendor, str(tmp_path / "bin" / vendor.programs[0]))

    def attempt() -> str:
        try:
            smi.sample(Tick(1.0))
        except StillFailing:
            return ""
        except ToolFailed as failed:
            return str(failed)
        return ""

    message = soon(attempt)
    smi.close()
    assert shown in message
    assert str(tmp_path / "bin" / vendor.programs[0]) in message
    assert smi.facts is None


def test_the_table_is_read_if_the_machine_readable_format_has_no_readings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = VENDORS["furiosa"]
    table = """\
+------+--------+---------------------+---------+-------+--------------+
| Arch | Device | Firmware            | Temp.   | Power | PCI-BDF      |
+------+--------+---------------------+---------+-------+--------------+
| RNGD | npu1   | 1.7.0, 4dfed1852e7b | 40.98°C |  38 W | 0000:03:00.0 |
+------+--------+---------------------+---------+-------+--------------+
"""
    (tmp_path / "table").write_text(table)
    (tmp_path / "json").write_text('[{"arch": "rngd", "dev_name": "npu1", "pci_bdf": "0000:03:00.0"}]')
    script = f'case "$*" in *json) cat {tmp_path}/json;; *) cat {tmp_path}/table;; esac'
    tool(tmp_path, monkeypatch, "furiosa-smi", "", script)
    smi = Smi(info, str(tmp_path / "bin" / "furiosa-smi"))
    assert values(smi) == {"gpu.1.temp": 40.98, "gpu.1.powerWatts": 38.0}
    smi.close()
