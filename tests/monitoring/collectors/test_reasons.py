"""The rule: a key that a source writes on one machine has a reason on another where it has no value.

Each test takes something away from a machine that has everything, one thing at a time: a file, a field of a
tool's output, a metric of an exporter. Whatever disappears must be named in the source's `absent`, for the
device that lacks it, or the source must be absent or failing as a whole. `show` prints these reasons, and the
page finds them by their names (`web/src/features/workspace/panels/notMeasured.ts`).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from runvitals.monitoring.collectors import sources
from runvitals.monitoring.collectors.base import Scope, Tick
from runvitals.monitoring.collectors.dcgm.collector import Dcgm
from runvitals.monitoring.collectors.nvidia.collector import Nvidia
from runvitals.monitoring.collectors.nvidia.smi import NvidiaSmi
from runvitals.monitoring.collectors.vendors.probes import intel
from tests.monitoring.collectors import trees
from tests.monitoring.collectors.amd import cards
from tests.monitoring.collectors.dcgm.test_collector import BOARD, text
from tests.monitoring.collectors.exporters import Exporter
from tests.monitoring.collectors.nvidia.fake import FakeGpu, FakeNvml
from tests.monitoring.collectors.nvidia.test_smi import NEW, document, gpu
from tests.monitoring.collectors.trees import plant
from tests.monitoring.collectors.vendors.machines import answer, tool
from tests.monitoring.collectors.vendors.test_intel import I915, XE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from runvitals.monitoring.collectors.base import Collector

HOST = ("cpu", "load", "pressure", "memory", "cgroup", "disk", "filesystem", "network", "thermal")
PATIENCE_S = 20.0


def keys(collector: Collector, at_s: Iterable[float] = (1.0, 13.0)) -> set[str]:
    """The keys of several samples: a rate needs two, and some readings are rare."""
    keys: set[str] = set()
    for mono_s in at_s:
        tick = Tick(mono_s)
        collector.sample(tick)
        keys.update(tick.gauges, tick.counters)
    return keys


def is_named(key: str, absent: Mapping[str, str]) -> bool:
    """Whether a reason names a key: the key, its beginning, or the end of a GPU's key. If another GPU has
    that reading, the reason must name the number of the GPU.
    """
    parts = key.split(".")
    if parts[0] != "gpu":
        return any(".".join(parts[:length]) in absent for length in range(1, len(parts) + 1))
    of_process = parts[1] == "process"
    number, end = parts[1 + of_process], ".".join(parts[2 + of_process :])
    why = absent.get(f"process.{end}" if of_process else end, absent.get(end, ""))
    named = [name for part in why.split("(GPU ")[1:] for name in part.partition(")")[0].split(", ")]
    return bool(why) and (not named or number in named)


def unexplained(before: set[str], after: set[str], absent: Mapping[str, str]) -> list[str]:
    return sorted(key for key in before - after if not is_named(key, absent))


# -- the host: a file that is missing or empty


def states_and_keys(root: Path, tree: trees.Tree) -> dict[str, tuple[set[str], dict[str, str] | None]]:
    """Source -> its keys and what it says to lack; None if it is absent or fails, with its reason."""
    collectors = sources.probe_all(plant(root, tree), HOST)
    result: dict[str, tuple[set[str], dict[str, str] | None]] = {}
    for collector in collectors.collectors:
        try:
            result[collector.name] = keys(collector), dict(getattr(collector, "absent", {}))
        except Exception:  # noqa: BLE001 - the monitor reports the error
            result[collector.name] = set(), None
    return {**dict.fromkeys(collectors.reasons.keys() - result.keys(), (set(), None)), **result}


@pytest.mark.parametrize("machine", ["BARE_VM", "LIMITED_SLICE", "V1", "CONTAINER"])
@pytest.mark.parametrize("change", ["removed", "empty"])
def test_each_file_of_the_host(tmp_path: Path, machine: str, change: str) -> None:
    tree: trees.Tree = getattr(trees, machine)
    whole = states_and_keys(tmp_path / "whole", tree)
    assert len(set().union(*(state for state, _ in whole.values()))) > 25
    for number, path in enumerate(
        path for path, content in tree.items() if content and not content.startswith("-> ")
    ):
        less = trees.without(tree, [path]) if change == "removed" else {**tree, path: ""}
        lacking = states_and_keys(tmp_path / str(number), less)
        for source, (before, _) in whole.items():
            after, absent = lacking[source]
            if absent is not None:
                assert unexplained(before, after, absent) == [], path


# -- accelerators: what one of two devices lacks


def test_each_file_of_an_amd_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runvitals.monitoring.collectors.amd.collector.PATIENCE_S", PATIENCE_S)
    other = cards.card(2, "0000:03:00.0")

    def look(name: str, tree: trees.Tree) -> tuple[set[str], dict[str, str]]:
        gpus = cards.watch(plant(tmp_path / name, tree), tmp_path / name)
        try:
            return keys(gpus, (100.0, 213.0)), gpus.absent
        finally:
            gpus.close()

    whole = cards.card(1, "0000:83:00.0")
    before, _ = look("whole", whole | other)
    for number, path in enumerate(
        path for path in whole if not path.endswith(("uevent", "vendor", "driver", "/"))
    ):
        after, absent = look(str(number), trees.without(whole, [path]) | other)
        assert unexplained(before, after, absent) == [], path


def test_each_file_of_an_intel_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))

    def look(name: str, tree: trees.Tree) -> tuple[set[str], dict[str, str]]:
        gpus = intel(plant(tmp_path / name, tree))
        return keys(gpus), dict(getattr(gpus, "absent", {}))

    before, _ = look("whole", I915 | XE)
    for number, path in enumerate(path for path in XE if path.endswith(("_input", "_max", "_ms", "_freq"))):
        after, absent = look(str(number), I915 | trees.without(XE, [path]))
        assert unexplained(before, after, absent) == [], path


# Without the counter, the time comes from samples, which is a reason to name it too.
SAMPLED = {
    "field 74": "swPowerCap", "field 269": "swThermal", "field 270": "hwThermal", "field 271": "hwPowerBrake",
}  # fmt: skip


def _of_gpu(gpu: FakeGpu) -> dict[str, Callable[[], object]]:
    """What a GPU may lack."""
    names = ("memory", "power_mw", "limit_mw", "fan", "memory_errors", "profile_values", "shares")
    return {
        **{name: lambda name=name: setattr(gpu, name, None) for name in names},  # type: ignore[misc]
        **{f"field {field}": lambda field=field: gpu.fields.pop(field) for field in gpu.fields},  # type: ignore[misc]
        **{f"clock {clock}": lambda clock=clock: gpu.clocks.pop(clock) for clock in gpu.clocks},  # type: ignore[misc]
        "utilization": lambda: setattr(gpu, "utilization", (0xFFFFFFFF, 0xFFFFFFFF)),
        "links": lambda: gpu.pcie.clear(),
        "encoder": lambda: setattr(gpu, "encoder", 0xFFFFFFFF),
        "process": lambda: setattr(gpu, "computing", [(os.getpid(), 0xFFFFFFFFFFFFFFFF)]),
    }


@pytest.mark.parametrize("what", list(_of_gpu(FakeGpu())))
def test_each_reading_of_an_nvidia_gpu(tmp_path: Path, what: str) -> None:
    (tmp_path / "self" / "ns").mkdir(parents=True)
    (tmp_path / "self" / "ns" / "pid").symlink_to("pid:[4026531836]")
    (tmp_path / str(os.getpid())).mkdir()
    seen = []
    for lacks in (False, True):
        gpus = [FakeGpu(0), FakeGpu(1)]
        for each in gpus:
            each.fan = 30
            each.computing = [(os.getpid(), 1 << 30)]
            each.shares = [(os.getpid(), 5, 1, 2, 3, 4)]
        if lacks:
            _of_gpu(gpus[1])[what]()
        source = Nvidia(Scope(pids=[os.getpid()]), FakeNvml(gpus), patience_s=PATIENCE_S, proc=str(tmp_path))
        seen.append((keys(source), source.absent))
        source.close()
    (before, _), (after, absent) = seen
    assert before - after or what in ("memory", *SAMPLED)
    assert unexplained(before, after, absent) == []
    sampled = SAMPLED.get(what)
    assert sampled is None or is_named(f"gpu.1.throttle.{sampled}Seconds", absent)


def test_each_element_of_nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def look(body: str) -> tuple[set[str], dict[str, str]]:
        tool(tmp_path, monkeypatch, "nvidia-smi", document(gpu(0, NEW), gpu(1, body)))
        source = NvidiaSmi(Scope(), f"{tmp_path}/bin/nvidia-smi", "it has no library", certain=True)
        try:
            tick = answer(source, 1.0)
            return {*tick.gauges, *tick.counters}, source.absent
        finally:
            source.close()

    before, _ = look(NEW)
    elements = [part for part in NEW.split("<") if part[:1].isalpha() and part.partition(">")[2].strip()]
    assert len(elements) > 30
    for element in elements:
        name = element.partition(">")[0]
        for body in (NEW.replace(f"<{element}", f"<{name}>N/A"), NEW.replace(f"<{element}", f"<{name}>")):
            after, absent = look(body)
            assert unexplained(before, after, absent) == [], element


def test_each_metric_of_a_dcgm_exporter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runvitals.monitoring.collectors.dcgm.collector.PATIENCE_S", PATIENCE_S)
    names = (
        "DEV_GPU_UTIL", "DEV_GPU_TEMP", "DEV_MEMORY_TEMP", "DEV_POWER_USAGE", "DEV_ENFORCED_POWER_LIMIT",
        "DEV_FB_USED", "DEV_FB_FREE", "DEV_SM_CLOCK", "DEV_FAN_SPEED", "PROF_SM_ACTIVE", "PROF_PCIE_TX_BYTES",
        "DEV_TOTAL_ENERGY_CONSUMPTION", "DEV_ECC_DBE_VOL_DEV", "DEV_CLOCKS_EVENT_REASONS",
        "DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS", "DEV_GPU_RECOVERY_ACTION",
    )  # fmt: skip
    other = BOARD.replace('gpu="1"', 'gpu="2"')

    def look(values: Mapping[str, str]) -> tuple[set[str], dict[str, str]]:
        both = [f"DCGM_FI_{name}{{{other}}} 1" for name in names]
        exporter.answer = text(
            *both, *(f"DCGM_FI_{name}{{{BOARD}}} {value}" for name, value in values.items())
        )
        source = Dcgm(exporter.url, {})
        try:
            return keys(source), source.absent
        finally:
            source.close()

    with Exporter() as exporter:
        whole = dict.fromkeys(names, "1")
        before, _ = look(whole)
        for name in names:
            for less in (
                {**whole, name: "9223372036854775794"},
                {each: "1" for each in names if each != name},
            ):
                after, absent = look(less)
                assert unexplained(before, after, absent) == [], name
