"""The lanes of runs whose samples count as their covered time, with what is to be read of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from runvitals.model.state import MONITOR, deciding_writers, silence_ms
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.usage.series_plan import SeriesPlan
from runvitals.server.usage.storage.figures import RunOwner, UsedDevice
from runvitals.server.usage.storage.machines import UNKNOWN_MACHINE, MachineFacts


@dataclass(frozen=True, slots=True)
class UsageLane:
    """A lane of a run on a host.

    Args:
        marks: when its writers started and ended, as far as they recorded it.
    """

    id: int
    host: str
    silence_ms: int
    marks: tuple[int, ...]
    plan: SeriesPlan


@dataclass(frozen=True, slots=True)
class UsageRun:
    """A run with its lanes by host, and the devices that it may have used.

    Args:
        cpus: how many CPUs it may use, by host.
        step_lanes: the lanes in which it logs steps.
        started_ms: when the first of their writers started.
    """

    owner: RunOwner
    lanes: Mapping[str, list[UsageLane]]
    devices: list[UsedDevice]
    cpus: Mapping[str, float] = field(default_factory=dict)
    step_lanes: frozenset[int] = frozenset()
    started_ms: int = 0


class UsageRunReader:
    """Reads what the roll-up must know about runs; remembers which series belong to which lists of keys."""

    def __init__(self, metadata_store: MetadataStore) -> None:
        self._metadata_store = metadata_store
        self._plans: dict[tuple[int, ...], SeriesPlan] = {}

    def runs(self, run_ids: Collection[int], now_ms: int) -> dict[int, UsageRun]:
        """Runs by id. Those that were simulated or imported, or do not exist any more, are left out."""
        figures = self._metadata_store.usage.figures
        owners = figures.owners(run_ids, now_ms)
        writers = self._metadata_store.writers.of_runs(owners)
        lists = figures.key_lists(owners)
        devices = figures.devices(owners)
        machines = self._metadata_store.usage.machines.of_runs(owners)
        runs = {}
        for run_id, owner in owners.items():
            lanes: dict[str, list[UsageLane]] = {}
            for host, deciding in deciding_writers(writers[run_id]).items():
                by_lane: dict[int, list[int]] = {}
                for number, lane in enumerate(deciding):
                    by_lane.setdefault(lane.lane_id, []).append(number)
                lanes[host] = [
                    UsageLane(
                        lane_id,
                        host,
                        max(silence_ms(deciding[number].interval_s) for number in numbers),
                        tuple(
                            time
                            for number in numbers
                            for time in (
                                deciding[number].started_ms,
                                *([deciding[number].last_ms] if deciding[number].ending else ()),
                            )
                        ),
                        self._plan(lists.get(lane_id, ())),
                    )
                    for lane_id, numbers in by_lane.items()
                ]
            logging = [lane for lane in writers[run_id] if lane.role != MONITOR]
            cpus = {host: machines.get((run_id, host), UNKNOWN_MACHINE).cpus for host in lanes}
            runs[run_id] = UsageRun(
                owner,
                lanes,
                [_with_slices(lane, machines.get((run_id, lane.host))) for lane in devices.get(run_id, [])],
                {host: count for host, count in cpus.items() if count is not None},
                frozenset(
                    lane.lane_id for lane in logging if self._plan(lists.get(lane.lane_id, ())).has_steps
                ),
                min((lane.started_ms for lane in logging), default=0),
            )
        return runs

    def _plan(self, lists: tuple[int, ...]) -> SeriesPlan:
        plan = self._plans.get(lists)
        if plan is None:
            metrics = self._metadata_store.metrics
            numbers = {number for key_list in lists for number in metrics.schema_of(key_list).metric_ids}
            keys = {key: number for number, key in metrics.keys(numbers).items()}
            plan = self._plans[lists] = SeriesPlan.of(keys)
            if len(self._plans) > 10_000:
                self._plans = {lists: plan}
        return plan


def _with_slices(device: UsedDevice, machine: MachineFacts | None) -> UsedDevice:
    """A device, with the slices of it that the run uses."""
    slices = None if machine is None else machine.slices.get(device.identity)
    return device if slices is None else replace(device, slices=slices.uuids, part=slices.part)
