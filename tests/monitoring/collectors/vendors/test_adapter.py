"""The collector for a vendor's tool: late, failing, hanging, without devices, with devices that come and
go.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from runvitals.monitoring.collectors.base import Absent, Scope, Tick
from runvitals.monitoring.collectors.plumbing.tool import ToolFailed
from runvitals.monitoring.collectors.vendors.adapter import Reading, Smi, Vendor, watch
from runvitals.monitoring.collectors.vendors.devices import LIMIT, POWER, TOTAL, USED
from runvitals.monitoring.collectors.vendors.formats import csv, text_of
from tests.monitoring.collectors.plumbing.test_tool import processes_with, soon
from tests.monitoring.collectors.trees import plant
from tests.monitoring.collectors.vendors.machines import answer, pci, tool, values

Make = Callable[..., Smi]


HEADER = "index, name, pci, load, used, total, heat, draw, cap, errors\n"
TWO = HEADER + (
    "1, Acme 2, 00000000:1B:00.0, 50 %, 1024 MiB, 4096 MiB, 60 C, 100.0 W, 400 W, 3\n"
    "0, Acme 2, 00000000:1A:00.0, 0 %, 0 MiB, 4096 MiB, 40 C, 50.0 W, 400 W, 0\n"
)


def acme(commands: Sequence[Sequence[str]] = ((),), timeout_s: float = 5.0) -> Vendor:
    return Vendor(
        name="acme",
        title="Acme card",
        programs=("acme-smi", "acme_smi"),
        folders=("/opt/acme/bin",),
        commands=commands,
        rows=lambda output: csv(text_of(output), key="index"),
        readings=(
            Reading("gpu", "%", "load", most=100.0),
            Reading(USED, "bytes", "used", bare="MiB"),
            Reading(TOTAL, "bytes", "total", bare="MiB"),
            Reading("temp", "°C", "heat"),
            Reading(POWER, "W", "draw"),
            Reading(LIMIT, "W", "cap"),
            Reading("unCorrectedMemoryErrors", "1", "errors", counter=True),
        ),
        timeout_s=timeout_s,
        missing={"fanSpeed": "it has no fan"},
    )


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """A source whose tool prints the file `tmp_path/acme-smi.out`."""
    created: list[Smi] = []

    def build(output: str | bytes, after: str = "", vendor: Vendor | None = None) -> Smi:
        tool(tmp_path, monkeypatch, "acme-smi", output, after)
        created.append(watch(plant(tmp_path / "root", pci("0000:1a:00.0", "acce")), vendor or acme()))
        return created[-1]

    yield build
    for smi in created:
        smi.close()


def say(tmp_path: Path, output: str) -> None:
    (tmp_path / "acme-smi.out").write_text(output)


def failure(smi: Smi, mono_s: float) -> str:
    """Its error, now or soon after the tool has finished."""

    def attempt() -> str:
        try:
            smi.sample(Tick(mono_s))
        except ToolFailed as failed:
            return str(failed)
        return ""

    return soon(attempt)


def test_readings_of_all_devices_under_our_keys(make: Make) -> None:
    smi = make(TWO)
    assert not smi.pending
    smi.sample(Tick(99.0))
    assert smi.pending
    assert values(smi, 99.0) == {
        "gpu.0.gpu": 0.0,
        "gpu.0.memoryAllocated": 0.0,
        "gpu.0.memoryAllocatedBytes": 0.0,
        "gpu.0.temp": 40.0,
        "gpu.0.powerWatts": 50.0,
        "gpu.0.powerPercent": 12.5,
        "gpu.0.enforcedPowerLimitWatts": 400.0,
        "gpu.0.unCorrectedMemoryErrors": 0.0,
        "gpu.1.gpu": 50.0,
        "gpu.1.memoryAllocated": 25.0,
        "gpu.1.memoryAllocatedBytes": 1024.0 * 1024 * 1024,
        "gpu.1.temp": 60.0,
        "gpu.1.powerWatts": 100.0,
        "gpu.1.powerPercent": 25.0,
        "gpu.1.enforcedPowerLimitWatts": 400.0,
        "gpu.1.unCorrectedMemoryErrors": 3.0,
    }
    assert not smi.pending
    assert smi.absent == {"fanSpeed": "it has no fan"}
    memory = 4096.0 * 1024 * 1024
    assert smi.facts == {
        "accelerator_acme": [
            {"index": 0, "name": "Acme 2", "pci": "0000:1a:00.0", "memory_bytes": memory},
            {"index": 1, "name": "Acme 2", "pci": "0000:1b:00.0", "memory_bytes": memory},
        ]
    }


def test_counters_are_totals_and_unchanged_facts_keep_their_object(make: Make) -> None:
    smi = make(TWO)
    tick = answer(smi, 1.0)
    assert tick.counters == {"gpu.0.unCorrectedMemoryErrors": 0.0, "gpu.1.unCorrectedMemoryErrors": 3.0}
    facts, absent = smi.facts, smi.absent
    answer(smi, 2.0)
    assert smi.facts is facts
    assert smi.absent is absent


def test_missing_readings_have_reasons(make: Make, tmp_path: Path) -> None:
    smi = make(
        HEADER
        + "0, Acme, N/A, N/A, [N/A], 4096 MiB, , -, 0 W, Unknown\n1, Acme, N/A, 7 %, N/A, N/A, , , , \n"
    )
    assert values(smi, 1.0) == {"gpu.1.gpu": 7.0}
    assert smi.absent == {
        "memoryAllocatedBytes": "not reported by acme-smi",
        "memoryAllocated": "not reported by acme-smi",
        "temp": "not reported by acme-smi",
        "powerWatts": "not reported by acme-smi",
        "powerPercent": "not reported by acme-smi",
        "unCorrectedMemoryErrors": "not reported by acme-smi",
        "gpu": "not reported by acme-smi (GPU 0)",
        "enforcedPowerLimitWatts": "not reported by acme-smi",
        "fanSpeed": "it has no fan",
    }
    say(tmp_path, TWO)
    soon(lambda: values(smi, 2.0).get("gpu.0.temp"))
    assert smi.absent == {"fanSpeed": "it has no fan"}


def test_a_value_that_one_of_two_devices_lost_has_a_reason(make: Make, tmp_path: Path) -> None:
    """After a while: some tools omit a value now and then."""
    smi = make(TWO)
    assert values(smi, 1.0)["gpu.1.temp"] == 60.0
    say(tmp_path, TWO.replace("60 C", "N/A"))
    soon(lambda: answer(smi, 2.0), lambda tick: "gpu.1.temp" not in tick.gauges)
    assert "temp" not in smi.absent
    for mono_s in (23.0, 44.0):
        assert values(smi, mono_s)["gpu.0.temp"] == 40.0
    assert smi.absent["temp"] == "not reported by acme-smi (GPU 1)"


def test_invalid_values_are_left_out(make: Make) -> None:
    assert values(make(HEADER + "0, Acme, , 65535 %, 1 MiB, 0 MiB, 40 C, , , \n")) == {
        "gpu.0.temp": 40.0,
    }


def test_a_tool_without_devices_fails_until_it_lists_one(make: Make, tmp_path: Path) -> None:
    smi = make("Acme tools 3.0\n" + HEADER)
    assert failure(smi, 1.0) == (
        f"{tmp_path}/bin/acme-smi: it lists no device; it printed 'Acme tools 3.0', "
        "'index, name, pci, load, used, total, heat, draw, cap, errors'"
    )
    say(tmp_path, TWO)
    assert recovered(smi, mono_s=2.0) == 60.0
    assert smi.absent == {"fanSpeed": "it has no fan"}


@pytest.mark.parametrize(
    ("output", "says"),
    [
        ("", "it lists no device; it printed nothing"),
        ("\x1b[31mindex, load?\n", "it lists no device; it printed 'index, load?'"),
        ("index, colour\n0, red\n", "none of its devices has a known reading; it printed"),
        ("+----+\n| index |\n|====|\n" + "long " * 999, "it lists no device; it printed 'index', 'long long"),
    ],
)
def test_invalid_output_is_an_error_with_its_first_lines(make: Make, output: str, says: str) -> None:
    message = failure(make(output), 1.0)
    assert says in message
    assert len(message) < 600


def test_identities_are_kept_if_the_readings_are_unknown(make: Make) -> None:
    smi = make("index, name, pci, warmth\n3, Acme 9, 0000:1a:00.0, 7\n")
    assert "none of its devices has a known reading" in failure(smi, 1.0)
    assert smi.facts == {"accelerator_acme": [{"index": 3, "name": "Acme 9", "pci": "0000:1a:00.0"}]}


def test_all_devices_are_lost(make: Make, tmp_path: Path) -> None:
    smi = make(TWO)
    answer(smi, 1.0)
    say(tmp_path, HEADER)
    events: list[object] = []

    def attempt() -> str:
        tick = Tick(2.0)
        try:
            smi.sample(tick)
        except ToolFailed as failed:
            events.extend(event["name"] for event in tick.events)
            return str(failed)
        return ""

    assert "it lists no device" in soon(attempt)
    assert events == ["device_lost", "device_lost"]


def test_a_device_is_lost_and_comes_back(make: Make, tmp_path: Path) -> None:
    smi = make(TWO)
    answer(smi, 1.0)
    say(tmp_path, "\n".join(TWO.split("\n")[:2]))
    lost = soon(lambda: answer(smi, 2.0), lambda tick: "gpu.0.temp" not in tick.gauges)
    assert lost.gauges["gpu.1.temp"] == 60.0
    (event,) = lost.events
    assert (event["name"], event["level"], event["source"]) == ("device_lost", "error", "acme")
    assert str(event["text"]).startswith("gpu.0 (Acme 2, 0000:1a:00.0) is no longer reported by ")
    assert smi.facts is not None
    assert len(smi.facts["accelerator_acme"]) == 2
    say(tmp_path, TWO)
    back = soon(lambda: answer(smi, 3.0), lambda tick: "gpu.0.temp" in tick.gauges)
    assert [event["name"] for event in back.events] == ["device_back"]


def test_a_failing_tool_is_an_error_until_it_works_again(make: Make, tmp_path: Path) -> None:
    smi = make("", "[ -e $0.broken ] || exit 0; echo 'driver is gone' >&2; exit 9")
    say(tmp_path, TWO)
    answer(smi, 1.0)
    broken = tmp_path / "bin" / "acme-smi.broken"
    broken.touch()
    say(tmp_path, "")
    smi.sample(Tick(2.0))
    assert failure(smi, 2.0) == f"{tmp_path}/bin/acme-smi exited with 9: driver is gone"
    broken.unlink()
    say(tmp_path, TWO)
    with pytest.raises(ToolFailed, match="driver is gone"):
        smi.sample(Tick(4.0))  # called again; still failing without newer output
    assert recovered(smi, mono_s=5.0) == 60.0


def test_output_as_old_as_the_pause_after_a_failure_gives_no_readings(make: Make, tmp_path: Path) -> None:
    broken = tmp_path / "bin" / "acme-smi.broken"
    smi = make("", "[ ! -e $0.broken ]", acme(timeout_s=1000.0))
    broken.touch()
    failure(smi, 1.0)
    broken.unlink()
    say(tmp_path, TWO)
    with pytest.raises(ToolFailed):
        smi.sample(Tick(100.0))
    assert recovered(smi, mono_s=400.0) is None
    assert values(smi, 401.0)["gpu.1.temp"] == 60.0


def recovered(smi: Smi, mono_s: float) -> float | None:
    """A reading of the first tick without an error."""

    def attempt() -> Tick | None:
        tick = Tick(mono_s)
        try:
            smi.sample(tick)
        except ToolFailed:
            return None
        return tick

    tick = soon(attempt)
    assert tick is not None
    return tick.gauges.get("gpu.1.temp")


def test_a_hanging_tool_is_killed_without_delaying_a_tick(make: Make) -> None:
    smi = make(TWO, "sleep 71.5", acme(timeout_s=3.0))
    smi.sample(Tick(1.0))
    smi.sample(Tick(2.0))
    with pytest.raises(ToolFailed, match="took longer than 3 s and was killed"):
        smi.sample(Tick(4.0))
    soon(lambda: not processes_with("71.5"))


OPTIONS = acme(commands=(("newest",), ("newer",), ("old",)))


@pytest.mark.parametrize(
    "others", ["echo unknown option >&2; exit 2", "exit 0", "echo '| Acme | 4 |'; exit 0"]
)
def test_other_options_are_tried_if_the_first_fail(make: Make, others: str) -> None:
    smi = make("", f"[ \"$1\" = old ] || {{ {others}; }}; echo '{TWO}'", OPTIONS)
    smi.sample(Tick(1.0))
    assert smi.pending  # a single reading waits for the remaining commands
    assert values(smi, 1.0)["gpu.1.temp"] == 60.0


def test_the_best_options_are_tried_again_later(make: Make, tmp_path: Path) -> None:
    busy = tmp_path / "busy"
    busy.touch()
    better = TWO.replace("60 C", "61 C")
    script = (
        f"[ $1 = newer ] && exit 2; [ $1 = old ] && echo '{TWO}' && exit; [ -e {busy} ] || echo '{better}'"
    )
    vendor = acme(commands=OPTIONS.commands, timeout_s=1000.0)
    smi = make("", f"echo $1 >> {tmp_path}/calls; {script}", vendor)
    assert values(smi, 1.0)["gpu.1.temp"] == 60.0
    busy.unlink()
    for second in range(2, 300):
        smi.sample(Tick(float(second)))
    assert (tmp_path / "calls").read_text().count("newest") == 1
    seconds = itertools.count(302)
    assert soon(lambda: values(smi, float(next(seconds))), lambda read: read["gpu.1.temp"] == 61.0)


def test_all_errors_are_reported_if_no_options_work(make: Make) -> None:
    script = "[ $1 = newest ] && echo no option >&2 && exit 2; [ $1 = newer ] && echo 'Acme 9'"
    smi = make("", script, OPTIONS)
    message = failure(smi, 1.0)
    assert "exited with 2: no option; " in message
    assert "acme-smi newer: it lists no device; it printed 'Acme 9'; " in message
    assert "acme-smi exited with 1" in message
    with pytest.raises(ToolFailed, match="no option"):
        smi.sample(Tick(1.5))


@pytest.mark.parametrize(
    ("end", "how"),
    [("kill -ABRT $$", "was killed by signal 6"), ("echo odd >&2; exit 1", "exited with 1: odd")],
)
def test_valid_output_before_an_error_is_used(make: Make, tmp_path: Path, end: str, how: str) -> None:
    smi = make(TWO, end)
    assert values(smi, 1.0)["gpu.1.temp"] == 60.0
    assert smi.absent["exit"].startswith(f"{tmp_path}/bin/acme-smi {how}")
    assert smi.absent["exit"].endswith(", after valid output")
    tool_that_is_well = tmp_path / "bin" / "acme-smi"
    tool_that_is_well.write_text(tool_that_is_well.read_text().replace(end, ""))
    soon(lambda: (answer(smi, 2.0), "exit" not in smi.absent)[1])


def test_an_incomplete_list_before_a_crash_is_an_error(make: Make, tmp_path: Path) -> None:
    smi = make(TWO, "kill -ABRT $$")
    assert len(values(smi, 1.0)) > 0
    say(tmp_path, "".join(TWO.splitlines(keepends=True)[:2]))
    smi.sample(Tick(2.0))
    assert "was killed by signal 6" in failure(smi, 2.0)


def test_output_before_a_hang_is_an_error(make: Make) -> None:
    smi = make(TWO, "sleep 72.5", acme(timeout_s=3.0))
    smi.sample(Tick(1.0))
    with pytest.raises(ToolFailed, match="took longer than 3 s"):
        smi.sample(Tick(4.0))


HOSTILE = HEADER + (
    "²,\x1b[31mred\x1b[0m \x07{long},-,1 %,1 MiB,4 MiB,1{many} C,-5 W,N/A,1\n"
    "{many}, B, 0000:1b:00.0, 7 %, 1 MiB, 4 MiB, \x1b[1m41,5\x1b[0m C, 5 W, 9 W, 1\n"
    "3, C, 0000:1c:00.0, 7 %, 1 MiB, 4 MiB, \x1b[1m41\x1b[0m C, 5 W, 10 W, 1\n"
).format(long="x" * 9000, many="9" * 5000)


def test_hostile_numbers_and_names(make: Make) -> None:
    smi = make(HOSTILE)
    read = values(smi)
    assert {key for key in read if key.endswith(".temp")} == {"gpu.3.temp"}
    assert read["gpu.3.temp"] == 41.0
    assert all(key.split(".")[1] in ("0", "1", "2", "3") for key in read)
    assert smi.facts is not None
    listed = smi.facts["accelerator_acme"]
    assert isinstance(listed, list)
    names = [str(each.get("name", "")) for each in listed]
    assert all(name.isprintable() and len(name) <= 200 for name in names)


@pytest.mark.parametrize(
    ("key", "unit", "text", "value"),
    [
        ("gpu", "%", "101 %", 101.0),  # the monitor leaves out what its range excludes
        ("gpu", "%", "65535 %", None),
        ("gpu", "%", "-1 %", None),
        ("gpu", "%", "100 %", 100.0),
        ("fanSpeed", "%", "110 %", 110.0),
        ("powerWatts", "W", "-5 W", None),
        ("temp", "°C", "-5 C", -5.0),
        ("memoryAllocatedBytes", "bytes", "-1 MiB", None),
    ],
)
def test_impossible_values_are_left_out(key: str, unit: str, text: str, value: float | None) -> None:
    assert Reading(key, unit, "it").of({"it": text}) == value


def test_a_row_without_readings_does_not_replace_a_device(make: Make) -> None:
    empty = "0, A, -, N/A, N/A, N/A, N/A, N/A, N/A, N/A\n"
    full = "0, A, -, 1 %, 1 MiB, 4 MiB, 7 C, 5 W, 9 W, 1\n"
    assert values(make(HEADER + empty + full))["gpu.0.temp"] == 7.0


def test_thousands_of_devices_are_an_error(make: Make) -> None:
    lines = "".join(f"{n}, A, -, 1 %, 1 MiB, 4 MiB, 1 C, 5 W, 9 W, 1\n" for n in range(600))
    assert "it lists 600 devices; it printed 'index, name" in failure(make(HEADER + lines), 1.0)


def test_ten_megabytes_are_not_read(make: Make, tmp_path: Path) -> None:
    smi = make(TWO, "yes '0, A, -, 1 %, 1 MiB, 4 MiB, 1 C, 5 W, 9 W, 1' | head -c 10000000")
    assert "printed more than 1048576 bytes and was killed" in failure(smi, 1.0)


def test_devices_without_an_index_are_numbered_by_address(make: Make, tmp_path: Path) -> None:
    first = "index, name, pci, heat\n-, A, 0000:3b:00.0, 30 C\n-, B, 0000:1a:00.0, 10 C\n"
    smi = make(first)
    assert values(smi, 1.0) == {"gpu.0.temp": 10.0, "gpu.1.temp": 30.0}
    say(tmp_path, "index, name, pci, heat\n-, A, 0000:3b:00.0, 31 C\n-, C, 0000:05:00.0, 5 C\n")
    assert soon(lambda: values(smi, 2.0), lambda read: read.get("gpu.1.temp") == 31.0) == {
        "gpu.1.temp": 31.0,
        "gpu.2.temp": 5.0,
    }


def test_without_its_tool_a_vendor_is_absent_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Absent) as absent:
        watch(Scope(), acme())
    assert str(absent.value) == (
        "Acme card found, but acme-smi or acme_smi is neither on PATH nor in /opt/acme/bin, /usr/bin, "
        "/usr/local/bin: install the vendor's tools, or mount them into the container"
    )
