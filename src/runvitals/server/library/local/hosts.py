"""The hosts of the runs of a data folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from runvitals.model.device import devices_of
from runvitals.model.host import Host
from runvitals.model.run import Run
from runvitals.model.state import RUNNING
from runvitals.readers.journals.series import Series
from runvitals.server.hosts.hosts import SEEN_MS, HostReading, HostRun, Recent


def host_runs(runs: Iterable[Run]) -> list[tuple[Run, Host, HostRun]]:
    """Return each host of each run, the newest record first."""
    triples = [(run, host, _host_run(run, host)) for run in runs for host in run.hosts]
    return sorted(triples, key=lambda item: item[2].last_ms, reverse=True)


def newest_runs(runs: Iterable[Run], now_ms: int) -> dict[str, HostRun]:
    """By host, its newest run; without hosts that have no recent record."""
    newest: dict[str, HostRun] = {}
    for _, host, host_run in host_runs(runs):
        if host_run.last_ms >= now_ms - SEEN_MS:
            newest.setdefault(host.name, host_run)
    return newest


def readings(runs: Iterable[Run]) -> list[HostReading]:
    """Return the newest samples of the hosts on which a run is running."""
    return [
        HostReading(
            host.name,
            host_run,
            host.interval_s,
            {
                key: (host.last_ms, value)
                for key, value in run.last.get(host.name, {}).items()
                if value == value
            },
            devices_of(host.name, run.machines.get(host.name, {})),
        )
        for run, host, host_run in host_runs(runs)
        if host.ending.state == RUNNING
    ]


def recent_of(series: Iterable[Series], windows: Mapping[str, int], now_ms: int) -> dict[str, Recent]:
    """Return the mean and growth of series over their windows."""
    recent = {}
    for item in series:
        values = item.values[item.t >= now_ms - windows.get(item.key, 0)]
        values = values[values == values]
        if len(values):
            recent[item.key] = Recent(float(values.mean()), float(values.max() - values.min()))
    return recent


def _host_run(run: Run, host: Host) -> HostRun:
    used = [
        device.position
        for device in devices_of(host.name, run.machines.get(host.name, {}))
        if device.used and device.position is not None
    ]
    return HostRun(
        id=run.id,
        entity=None,
        project=run.project,
        name=run.name,
        author=None,
        state=host.ending.state,
        started_ms=host.started_ms,
        last_ms=host.last_ms,
        devices=tuple(sorted(used)) or None,
    )
