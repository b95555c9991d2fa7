"""The registry of collectors, in the order in which they are sampled.

A collector is a module with a function ``probe``. Other packages provide collectors by entry points of the
group ``runvitals.collectors``::

    [project.entry-points."runvitals.collectors"]
    fridge = "fridge.vitals:probe"
"""

from __future__ import annotations

import os
import sys

from runvitals.monitoring.collectors.base import NOTHING_THERE, Absent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence

    from runvitals.monitoring.collectors.base import Collector, Probe, Scope
    from runvitals.monitoring.collectors.selection import Selection

GROUP = "runvitals.collectors"

# The process tree comes first: its CPU share is a difference over time, and collectors that ran before it
# would add jitter to the time of its reading.
_USUAL = {
    "process": "runvitals.monitoring.collectors.host.process:probe",
    "cpu": "runvitals.monitoring.collectors.host.cpu:probe",
    "load": "runvitals.monitoring.collectors.host.load:probe",
    "pressure": "runvitals.monitoring.collectors.host.pressure:probe",
    "memory": "runvitals.monitoring.collectors.host.memory:probe",
    "cgroup": "runvitals.monitoring.collectors.host.cgroup:probe",
    "disk": "runvitals.monitoring.collectors.host.disk:probe",
    "filesystem": "runvitals.monitoring.collectors.host.filesystem:probe",
    "network": "runvitals.monitoring.collectors.host.network:probe",
}
RARE = {
    "infiniband": "runvitals.monitoring.collectors.host.probes:infiniband",
    "ena": "runvitals.monitoring.collectors.host.ena:probe",
    "energy": "runvitals.monitoring.collectors.host.probes:energy",
    "thermal": "runvitals.monitoring.collectors.host.thermal:probe",
    "nvidia": "runvitals.monitoring.collectors.nvidia.probe:probe",
    # After "nvidia": values that the driver reports are not taken from the exporter.
    "dcgm": "runvitals.monitoring.collectors.dcgm.probe:probe",
    "amd": "runvitals.monitoring.collectors.amd.probe:probe",
    "trainium": "runvitals.monitoring.collectors.trainium.probe:probe",
    "tpu": "runvitals.monitoring.collectors.tpu.probe:probe",
    "gaudi": "runvitals.monitoring.collectors.vendors.probes:gaudi",
    "ascend": "runvitals.monitoring.collectors.vendors.probes:ascend",
    "cambricon": "runvitals.monitoring.collectors.vendors.probes:cambricon",
    "moorethreads": "runvitals.monitoring.collectors.vendors.probes:moorethreads",
    "metax": "runvitals.monitoring.collectors.vendors.probes:metax",
    "iluvatar": "runvitals.monitoring.collectors.vendors.probes:iluvatar",
    "kunlunxin": "runvitals.monitoring.collectors.vendors.probes:kunlunxin",
    "hygon": "runvitals.monitoring.collectors.vendors.probes:hygon",
    "thead": "runvitals.monitoring.collectors.vendors.probes:thead",
    "tenstorrent": "runvitals.monitoring.collectors.vendors.probes:tenstorrent",
    "rebellions": "runvitals.monitoring.collectors.vendors.probes:rebellions",
    "furiosa": "runvitals.monitoring.collectors.vendors.probes:furiosa",
    "enflame": "runvitals.monitoring.collectors.vendors.probes:enflame",
    "biren": "runvitals.monitoring.collectors.vendors.probes:biren",
    "qualcomm": "runvitals.monitoring.collectors.vendors.probes:qualcomm",
    "jetson": "runvitals.monitoring.collectors.vendors.probes:jetson",
    "rockchip": "runvitals.monitoring.collectors.vendors.probes:rockchip",
    "intel": "runvitals.monitoring.collectors.vendors.probes:intel",
    "npu": "runvitals.monitoring.collectors.vendors.probes:npu",
    "graphcore": "runvitals.monitoring.collectors.graphcore.probe:probe",
    # Last: it may wait a moment for responses, which must not delay the others.
    "openmetrics": "runvitals.monitoring.collectors.openmetrics.collector:probe",
}
"""Sources that most machines lack. The monitor probes them in a forked child, and those that are there again:
a probe is cheap, and starts nothing that it does not end.
"""
LINUX = {**_USUAL, **RARE}
# macOS and Windows: what psutil reports.
PORTABLE = {
    "process": "runvitals.monitoring.collectors.host.psutil_sources:process",
    "cpu": "runvitals.monitoring.collectors.host.psutil_sources:cpu",
    "load": "runvitals.monitoring.collectors.host.psutil_sources:load",
    "memory": "runvitals.monitoring.collectors.host.psutil_sources:memory",
    "disk": "runvitals.monitoring.collectors.host.psutil_sources:disk",
    "filesystem": "runvitals.monitoring.collectors.host.psutil_sources:filesystem",
    "network": "runvitals.monitoring.collectors.host.psutil_sources:network",
    "apple": "runvitals.monitoring.collectors.apple.probe:probe",
    "openmetrics": "runvitals.monitoring.collectors.openmetrics.collector:probe",
}

# How a reason starts that reports a fault, not something that this machine lacks.
UNKNOWN = "unknown collector"
NAME_TAKEN = "a built-in collector has this name"
PROBE_FAILED = "the probe failed"
INVALID = "the probe returned an invalid collector"
FAULTS = (UNKNOWN, NAME_TAKEN, PROBE_FAILED, INVALID)


class Sources:
    """The result of the probes.

    Args:
        collectors: those available, in sampling order.
        reasons: collector name -> why it, or a part of it, is not available. A name that is also among the
            collectors is available in part.
    """

    __slots__ = ("collectors", "reasons")

    def __init__(self, collectors: list[Collector], reasons: dict[str, str]) -> None:
        self.collectors = collectors
        self.reasons = reasons

    def states(self, selection: Selection) -> dict[str, dict[str, str]]:
        """Return the state of each collector.

        ``on``, ``on`` with a reason (available in part), or ``absent`` with a reason. Names in `selection`
        that no collector has are absent as well.

        Example:
            >>> probe_all(scope).states(Selection(["all"]))["energy"]
            {'state': 'absent', 'reason': '/sys/class/powercap cannot be listed: No such file or directory'}
        """
        states = {collector.name: state(collector) for collector in self.collectors}
        for name, reason in self.reasons.items():
            if name not in states:
                states[name] = {"state": "absent", "reason": reason}
        for word in selection.unknown_names((*built_in(), *states)):
            reason = f"{UNKNOWN}; expected one of {', '.join(built_in())}"
            states[word] = {"state": "absent", "reason": reason}
        return states


def built_in(platform: str = sys.platform) -> Mapping[str, str]:
    """Collector name -> ``module:probe``, for a value of ``sys.platform``."""
    return LINUX if platform == "linux" else PORTABLE


def probe_all(
    scope: Scope,
    names: Container[str] | None = None,
    site_folders: Sequence[str] = (),
    absent: Mapping[str, str] | None = None,
) -> Sources:
    """Run every probe. A collector whose probe fails is absent, with the error as the reason.

    Args:
        scope: what the collectors are to observe.
        names: those of the collectors to probe; None for all.
        site_folders: folders of installed packages, searched for collectors of other packages. They are
            appended to ``sys.path`` if there are any, or if the built-in collectors need a package (psutil).
        absent: name -> reason of built-in collectors that are known to be absent, and not probed.

    Example:
        >>> found = probe_all(Scope(pids=[1234]))
        >>> [collector.name for collector in found.collectors], found.reasons
        (['process', 'cpu', …], {'energy': '/sys/class/powercap cannot be listed: No such file or directory'})
    """
    sources = Sources([], {})
    scope.site_folders = tuple(site_folders)
    table = dict(built_in())
    others, clashes = third_party(site_folders)
    for name, probe_path in others.items():
        if name in table:
            clashes[f"{name} ({probe_path})"] = NAME_TAKEN
        else:
            table[name] = probe_path
    if others or sys.platform != "linux":
        sys.path.extend(folder for folder in site_folders if folder not in sys.path)
    sources.reasons.update(clashes)
    for name, probe_path in table.items():
        if absent and name in absent:
            sources.reasons[name] = absent[name]
        elif names is None or name in names:
            _ask(sources, name, probe_path, scope)
    return sources


def third_party(site_folders: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Read the collectors of installed packages from their ``entry_points.txt``.

    Returns {collector name: ``module:probe``} and {unusable entry: reason}.

    Parses the files directly: importing ``importlib.metadata`` costs 15 ms and 4 MB.
    """
    probe_paths: dict[str, str] = {}
    problems: dict[str, str] = {}
    for folder in site_folders:
        try:
            names = os.listdir(folder)
        except FileNotFoundError:  # no packages are installed there
            continue
        except OSError as error:
            problems[folder] = f"cannot be searched for collectors: {error.strerror}"
            continue
        for name in sorted(names):
            if not name.endswith(".dist-info"):
                continue
            for source, probe_path in _entry_points(f"{folder}/{name}/entry_points.txt"):
                if not _is_place(probe_path):
                    problems[f"{source} ({name})"] = (
                        f"entry point {probe_path!r} is not of the form package.module:probe"
                    )
                elif source in probe_paths and probe_paths[source] != probe_path:
                    problems[f"{source} ({probe_path})"] = f"{probe_paths[source]} has this name already"
                else:
                    probe_paths[source] = probe_path
    return probe_paths, problems


def load(probe_path: str) -> Probe:
    """Import the function that ``package.module:name`` names."""
    module, _, function = probe_path.partition(":")
    __import__(module)
    probe: Probe = getattr(sys.modules[module], function)
    return probe


def state(collector: Collector) -> dict[str, str]:
    """Return the state of an available collector: ``on``, with the reasons for missing parts.

    Example:
        >>> state(filesystem)
        {'state': 'on', 'reason': 'disk./data: /data: No such file or directory'}
    """
    reason = _missing_parts(collector)
    return {"state": "on", "reason": reason} if reason else {"state": "on"}


def is_partial(state: Mapping[str, str]) -> bool:
    """Return whether an available collector lacks something that this machine has.

    Example:
        >>> is_partial({"state": "on", "reason": "swap.used: there is none: no swap"})
        False
    """
    reason = state.get("reason", "")
    return bool(reason) and not all(f": {NOTHING_THERE}" in part for part in reason.split("; "))


def close(collector: Collector, report: Callable[[str, Exception | None], None]) -> None:
    """Release what a collector holds, if it has a `close`. Errors go to `report`."""
    try:
        getattr(collector, "close", _nothing)()
    except Exception as error:  # noqa: BLE001 -- the other collectors are closed as well
        report(collector.name, error)


def _nothing() -> None:
    """Stands in for `close` where a collector has none."""


def _missing_parts(collector: Collector) -> str:
    """Return the parts and the reasons.

    Parts with the same reason together: `fanSpeed, temp: not supported`.
    """
    parts: Mapping[str, str] = getattr(collector, "absent", None) or {}
    alike: dict[str, list[str]] = {}
    for part, why in parts.items():
        alike.setdefault(why, []).append(part)
    return "; ".join(f"{', '.join(names)}: {why}" for why, names in alike.items())


def _ask(sources: Sources, name: str, probe_path: str, scope: Scope) -> None:
    try:
        collector = load(probe_path)(scope)
    except Absent as absent:
        sources.reasons[name] = str(absent)
        return
    except Exception as error:  # noqa: BLE001 -- a driver or plugin that fails must not stop the other collectors
        sources.reasons[name] = f"{PROBE_FAILED}: {type(error).__name__}: {error}"
        return
    if collector is None:
        sources.reasons[name] = "not available on this machine"
        return
    if not hasattr(collector, "name") or not hasattr(collector, "sample"):
        sources.reasons[name] = (
            f"{INVALID}: {probe_path} gave {collector!r}, which lacks `name` or `sample()`"
        )
        return
    sources.collectors.append(collector)
    missing = _missing_parts(collector)
    if missing:
        sources.reasons[name] = missing


def _entry_points(path: str) -> list[tuple[str, str]]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().split("\n")
    except OSError:  # most packages have none
        return []
    section = ""
    pairs = []
    for line in lines:
        line = line.strip()
        if line.startswith("["):
            section = line.strip("[] ")
        elif section == GROUP and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            # "module:probe [extra]": the extra is a leftover of old installers.
            pairs.append((name.strip(), value.partition("[")[0].strip()))
    return pairs


def _is_place(text: str) -> bool:
    module, colon, function = text.partition(":")
    return bool(colon) and function.isidentifier() and all(part.isidentifier() for part in module.split("."))
