"""ioreg's output in both formats, complete and incomplete."""

from __future__ import annotations

import plistlib
from base64 import b64encode

import pytest

from runvitals.monitoring.collectors.apple import ioreg_output
from tests.monitoring.collectors.apple.macs import GIB, STATISTICS, entry, plist, tree

RADEON = {"Device Utilization %": 12, "vramUsedBytes": GIB}


@pytest.mark.parametrize("output", [tree(STATISTICS), plist(entry(STATISTICS))], ids=["tree", "plist"])
def test_both_formats_give_the_same_result(output: str) -> None:
    (gpu,) = ioreg_output.parse(output.encode())
    assert gpu.statistics == STATISTICS
    assert (gpu.model, gpu.about, gpu.is_apples) == ("Apple M3 Max", {"gpu_cores": 40}, True)


@pytest.mark.parametrize("form", ["tree", "plist"])
def test_other_gpus_are_ignored_beside_apples(form: str) -> None:
    if form == "tree":
        output = tree(RADEON, "AMD Radeon", "AMDRadeonX6000") + tree(STATISTICS)
    else:
        output = plist(entry(RADEON, name="AMDRadeonX6000"), entry(STATISTICS))
    assert [gpu.statistics["Device Utilization %"] for gpu in ioreg_output.parse(output.encode())] == [64.0]


def test_lines_without_a_heading_are_separate_entries() -> None:
    line = '"PerformanceStatistics" = {"Device Utilization %%"=%d,"Alloc system memory"=1}\n'
    entries = ioreg_output.parse((line % 2 + line % 16).encode())
    assert [gpu.statistics["Device Utilization %"] for gpu in entries] == [2.0, 16.0]


def test_tree_branches_are_not_part_of_a_name() -> None:
    drawn = "\n".join(f"  | |   {line}" for line in tree(STATISTICS).splitlines())
    assert ioreg_output.parse(drawn.encode())[0].statistics == STATISTICS


def test_values_that_are_not_numbers_are_left_out() -> None:
    line = '"PerformanceStatistics" = {"a"="1","b"=Yes,"c"=(1,2),"d"=-3,"e"=.5,"f"={"g"=7},"h"=}'
    (gpu,) = ioreg_output.parse(line.encode())
    assert gpu.statistics == {"d": -3.0, "e": 0.5, "g": 7.0}


def test_a_name_written_as_data() -> None:
    data = f"<data>\n\t{b64encode(b'Apple M1' + bytes(1)).decode()}\n\t</data>"
    assert ioreg_output.parse(plist(entry(STATISTICS, model=data)).encode())[0].model == "Apple M1"
    raw = ioreg_output.parse(plist(entry(STATISTICS, model="<data>/w==</data>")).encode())[0]
    assert raw.model == "/w=="


def test_an_invalid_name_does_not_affect_readings() -> None:
    output = plist(entry(STATISTICS)).encode().replace(b"M3 Max", b"M3 \xff\xfe")
    assert ioreg_output.parse(output)[0].statistics == STATISTICS


def test_property_lists_are_read_as_by_plistlib() -> None:
    text = plist(entry(STATISTICS), entry(RADEON))
    assert ioreg_output.property_list(text) == plistlib.loads(text.encode())


@pytest.mark.parametrize(
    "output",
    [
        plist(entry(STATISTICS))[:-30],
        plist(entry(STATISTICS))[:400],
        "<plist>",
        "<plist></dict></plist>",
        '<plist version="1.0"><array><dict><key>a</key></plist>',
    ],
)
def test_an_incomplete_property_list_is_an_error(output: str) -> None:
    with pytest.raises(ValueError, match="incomplete property list"):
        ioreg_output.parse(output.encode())


@pytest.mark.parametrize(
    "output",
    [
        "",
        "no such thing\n",
        plist(),
        plist("<dict><key>IOClass</key><string>AGX</string></dict>"),
        tree(STATISTICS)[:200],
        '"PerformanceStatistics" = {"Device Utilization %"=4',
    ],
    ids=["nothing", "other", "no entry", "no statistics", "torn", "torn line"],
)
def test_a_gpu_without_statistics_is_ignored(output: str) -> None:
    with pytest.raises(ValueError, match="ioreg lists no GPU with PerformanceStatistics"):
        ioreg_output.parse(output.encode())
