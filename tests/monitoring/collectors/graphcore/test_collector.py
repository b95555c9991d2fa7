"""IPUs of the run: late, failing and lost devices. IPUs used by others have no readings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.monitoring.collectors.base import Scope
from runvitals.monitoring.collectors.graphcore.collector import Ipus
from runvitals.monitoring.collectors.plumbing.background import Hung
from tests.monitoring.collectors.graphcore.ipus import Library, card, forget, tick
from tests.monitoring.collectors.trees import last_pid, process, put
from tests.patience import PATIENCE_S

RUN, WORKER, STRANGER = 1000, 1001, 2000


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    library = Library(tmp_path)
    yield library
    forget(library.folder)


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A procfs with the run's process, its child, and another user's process."""
    files = process(RUN, 1) | process(WORKER, RUN) | process(STRANGER, 1) | last_pid(STRANGER)
    for path, text in files.items():
        put(tmp_path / "host", path, text)
    return tmp_path / "host" / "proc"


@pytest.fixture
def ipus(library: Library, proc: Path) -> Iterator[Ipus]:
    ipus = Ipus(Scope(pids=[RUN]), str(library.folder), patience_s=PATIENCE_S, proc=str(proc))
    yield ipus
    ipus.close()


def test_all_keys_of_the_runs_ipus(library: Library, ipus: Ipus) -> None:
    library.answer(card(0, RUN))
    moment = tick(ipus, 100.0)
    assert moment.gauges == {
        "ipu.0.average board temp (C)": 31.5,
        "ipu.0.average die temp (C)": 40.25,
        "ipu.0.clock (MHz)": 1600.0,
        "ipu.0.ipu power (W)": 88.5,
        "ipu.0.total board power (W)": 201.0,
        "ipu.0.ipu utilisation (%)": 72.5,
        "ipu.0.ipu utilisation (session) (%)": 64.0,
        "ipu.0.speed (GT/s)": 8.0,
    }
    assert (moment.counters, moment.events, ipus.absent) == ({}, [], {})


def test_constant_values_are_written_once_on_change_and_every_few_minutes(
    library: Library, ipus: Ipus
) -> None:
    library.answer(card(0, RUN))
    assert "ipu.0.speed (GT/s)" in tick(ipus, 100.0).gauges
    again = tick(ipus, 101.0).gauges
    assert "ipu.0.speed (GT/s)" not in again
    assert again["ipu.0.clock (MHz)"] == 1600.0
    library.answer(card(0, RUN, link_speed="2.5 GT/s"), card(1, RUN))
    later = tick(ipus, 102.0).gauges
    assert (later["ipu.0.speed (GT/s)"], later["ipu.1.speed (GT/s)"]) == (2.5, 8.0)
    assert "ipu.0.speed (GT/s)" not in tick(ipus, 390.0).gauges
    assert "ipu.0.speed (GT/s)" in tick(ipus, 401.0).gauges  # after five minutes it is written again


def test_ipus_of_child_processes_count_but_not_those_of_others(library: Library, ipus: Ipus) -> None:
    library.answer(card(12, WORKER), card(2, STRANGER), card(3, None), card(1, RUN))
    assert {key.split(".")[1] for key in tick(ipus, 100.0).gauges} == {"12", "1"}
    assert ipus.facts is not None
    facts = ipus.facts["ipu"]
    assert isinstance(facts, dict)
    assert (facts["vendor"], facts["device_count"]) == ("Graphcore", 4)
    assert [(each["id"], each["used"]) for each in facts["devices"]] == [
        ("1", True), ("2", False), ("3", False), ("12", True),
    ]  # fmt: skip
    assert facts["devices"][0] == {
        "id": "1", "board ipu index": "1", "board type": "C2", "board serial number": "0042.0001.700001",
        "ipu architecture": "ipu1", "pci id": "0000:1b:00.0", "numa node": "1", "driver version": "1.1.0",
        "firmware version": "1.4.2", "used": True,
    }  # fmt: skip
    facts = ipus.facts
    tick(ipus, 101.0)
    assert ipus.facts is facts


def test_reasons_if_the_run_uses_no_ipu(library: Library, ipus: Ipus) -> None:
    library.answer(card(0, STRANGER), card(1, None))
    assert tick(ipus, 100.0).gauges == {}
    assert ipus.absent["ipu"].startswith("1 of 2 are in use, none by a process of the run (in a container")
    library.answer(card(0, None), card(1, None))
    tick(ipus, 101.0)
    assert ipus.absent == {"ipu": "none of 2 IPUs is in use"}
    library.answer()
    tick(ipus, 102.0)
    assert ipus.absent["ipu"] == "gcipuinfo lists no IPU: there is no partition, or it has no IPU"
    library.answer(card(0, RUN))
    tick(ipus, 103.0)
    assert "ipu" not in ipus.absent


def test_readings_missing_on_one_board_only(library: Library, ipus: Ipus) -> None:
    silent = {name: "N/A" for name in card(0, None) if name != "id"} | {"user process id": str(RUN)}
    library.answer({"id": "0", **silent}, card(1, RUN, ipu_power="N/A"))
    assert not any("ipu.0." in key or "ipu power" in key for key in tick(ipus, 100.0).gauges)
    assert ipus.absent["ipu power (W)"] == "not reported by the board"
    assert ipus.absent["clock (MHz)"] == "not reported by the board (IPU 0)"


def test_ipus_without_ids_are_numbered(library: Library, ipus: Ipus) -> None:
    devices = [card(number, RUN) for number in range(2)]
    for device in devices:
        del device["id"]
    library.answer(*devices)
    assert {key.split(".")[1] for key in tick(ipus, 100.0).gauges} == {"0", "1"}


def test_a_lost_ipu_is_reported_and_comes_back(library: Library, ipus: Ipus) -> None:
    library.answer(card(0, RUN), card(1, RUN))
    assert tick(ipus, 100.0).events == []
    library.answer(card(0, RUN))
    (event,) = tick(ipus, 101.0).events
    assert (event["name"], event["text"]) == ("device_lost", "IPU 1 is no longer listed")
    assert ipus.absent == {"ipu.1": "lost"}
    assert tick(ipus, 102.0).events == []
    library.answer(card(1, RUN), card(0, RUN))
    (event,) = tick(ipus, 103.0).events
    assert (event["name"], event["level"]) == ("device_back", "info")
    assert ipus.absent == {}


def test_a_failing_library_is_called_again(library: Library, ipus: Ipus) -> None:
    library.answer(error="no partition")
    for mono_s in (100.0, 101.0):
        with pytest.raises(RuntimeError, match="no partition"):
            tick(ipus, mono_s)
    library.answer(card(0, RUN))
    assert len(tick(ipus, 102.0).gauges) == 8


def test_an_import_error_is_reported(tmp_path: Path, proc: Path) -> None:
    put(tmp_path, "broken/gcipuinfo.py", "raise ImportError('libpoplar.so: cannot open shared object file')")
    ipus = Ipus(Scope(pids=[RUN]), str(tmp_path / "broken"), patience_s=PATIENCE_S, proc=str(proc))
    with pytest.raises(ImportError, match=r"libpoplar\.so: cannot open"):
        tick(ipus, 100.0)
    ipus.close()
    forget(tmp_path / "broken")


def test_a_hanging_library_does_not_delay_the_tick(library: Library, proc: Path) -> None:
    library.answer(card(0, RUN), hang_s=30.0)
    ipus = Ipus(Scope(pids=[RUN]), str(library.folder), patience_s=0.01, proc=str(proc))
    assert tick(ipus, 100.0).gauges == {}
    assert ipus.pending
    with pytest.raises(Hung, match="no answer for 31 s"):
        tick(ipus, 131.0)
    assert ipus.pending  # the ticks have ended, the call has not
    ipus.close()


def test_the_settings_can_exclude_children(library: Library, proc: Path) -> None:
    library.answer(card(0, WORKER))
    scope = Scope(pids=[RUN], process_tree=False)
    ipus = Ipus(scope, str(library.folder), patience_s=PATIENCE_S, proc=str(proc))
    assert tick(ipus, 100.0).gauges == {}
    ipus.close()


def test_without_a_run_all_ipus_are_read(library: Library, proc: Path) -> None:
    library.answer(card(0, STRANGER), card(1, None))
    scope = Scope(pids=[RUN])
    scope.whole_machine = True
    ipus = Ipus(scope, str(library.folder), patience_s=PATIENCE_S, proc=str(proc))
    assert len(tick(ipus, 100.0).gauges) == 16
    ipus.close()


def test_processes_of_this_machine(library: Library) -> None:
    library.answer(card(0, os.getppid()))
    ipus = Ipus(Scope(pids=[os.getppid()]), str(library.folder), patience_s=PATIENCE_S)
    assert len(tick(ipus, 100.0).gauges) == 8
    ipus.close()
