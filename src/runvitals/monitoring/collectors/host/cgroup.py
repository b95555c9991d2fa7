"""Effects of our cgroup's limits: CPU quota and throttling, processes killed for lack of memory."""

from __future__ import annotations

from runvitals.monitoring.collectors.base import NOTHING_THERE, Absent, Every, open_if_there
from runvitals.monitoring.collectors.plumbing.cgroup import OomKills, locate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Scope, Tick

# Quotas of a running container can be changed; reading them takes 10 µs per level.
LIMITS_EVERY_S = 60.0
# Kills are rare, and the host's count is one line of a long file.
KILLS_EVERY_S = 10.0
HOST_KILLS_EVERY_S = 30.0
# With fewer periods, the share of throttled ones is random. There are 10 per second.
MIN_PERIODS = 2
OF_QUOTA = ("cgroup.cpu.limit", "cpu.ofLimit", "proc.cpu.throttledPercent", "proc.cpu.throttledSeconds")
UNREPORTED = "not in the cgroup's cpu.stat"
UNCOUNTED = "neither the cgroup nor the kernel counts them"
NO_QUOTA = f"{NOTHING_THERE}: no cgroup has a CPU quota"
# Over shorter intervals, the share of the quota is noise.
MIN_INTERVAL_S = 0.02


def probe(scope: Scope) -> CgroupUse:
    """Make the collector; raise Absent if the machine lacks the source."""
    use = CgroupUse(scope)
    if use.idle:
        raise Absent(
            "no cgroup counts our CPU time or memory, and the kernel does not count its out-of-memory kills"
        )
    return use


class CgroupUse:
    """The cgroup's processor limit, throttling and memory kills.

    `cgroup.cpu.limit`, `cpu.ofLimit`, `proc.cpu.throttledPercent`, `proc.cpu.throttledSeconds`,
    `proc.memory.oomKills`. ``facts`` name the cgroup that sets the quota.
    """

    name = "cgroup"

    def __init__(self, scope: Scope) -> None:
        self._cgroup = locate(scope)
        self._limits = Every(LIMITS_EVERY_S)
        self.every_s = KILLS_EVERY_S
        self._quota: CpuQuota | None = None
        self.absent: dict[str, str] = {}
        self.facts: dict[str, object] | None = None
        self._read_quota()
        self._kills = OomKills(scope)
        self._kills_every = Every(HOST_KILLS_EVERY_S if self._kills.host_wide else KILLS_EVERY_S)
        has_kills = self._kills.read() is not None
        self.idle = self._cgroup.cpu is None and not has_kills
        self._uncounted = {} if has_kills else {"proc.memory.oomKills": UNCOUNTED}
        self._explain()

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        if self._limits.due(tick.mono_s):
            self._read_quota()
            self._explain()
        if self._quota is not None:
            self._quota.sample(tick)
        if self._kills_every.due(tick.mono_s):
            kills = self._kills.read()
            if kills is not None:
                tick.counters["proc.memory.oomKills"] = float(kills)

    def _read_quota(self) -> None:
        limit = self._cgroup.cpu_limit()
        before = self._quota
        if limit is None:
            self._quota = None
        elif before is not None and before.folder == limit.folder:
            before.cpus = limit.value
        else:
            self._quota = CpuQuota(limit.folder, limit.value)
        if before is not None and before is not self._quota:
            before.close()
        self.every_s = KILLS_EVERY_S if self._quota is None else 0.0

    def _explain(self) -> None:
        """Update `absent` and `facts`; replace an object only if it has changed."""
        quota = self._quota
        lacking = dict.fromkeys(OF_QUOTA, NO_QUOTA) if quota is None else quota.absent
        absent = {**lacking, **self._uncounted}
        if absent != self.absent:
            self.absent = absent
        limit = None if quota is None else {"cpus": quota.cpus, "set_by": quota.folder}
        if limit != (self.facts or {}).get("cgroup_cpu_limit"):
            self.facts = {"cgroup_cpu_limit": limit}  # None: it was removed


class CpuQuota:
    """A folder with a CPU quota: how much of it is used, and how often its processes were throttled.

    A read takes 3 µs.
    """

    __slots__ = (
        "_mono_s",
        "_periods",
        "_stat",
        "_throttled",
        "_usage",
        "_used_s",
        "absent",
        "cpus",
        "folder",
    )

    def __init__(self, folder: str, cpus: float) -> None:
        self.folder = folder
        self.cpus = cpus
        self._stat = open_if_there(folder + "/cpu.stat")
        # In v1 the time is in another controller, usually in the same folder.
        self._usage = open_if_there(folder + "/cpuacct.usage")
        self._mono_s: float | None = None
        self._used_s: float | None = None
        stat = self._read_stat()
        self._periods, self._throttled = stat.get(b"nr_periods", 0), stat.get(b"nr_throttled", 0)
        self.absent: dict[str, str] = {}
        if b"nr_periods" not in stat:
            self.absent["proc.cpu.throttledPercent"] = UNREPORTED
        if b"throttled_usec" not in stat and b"throttled_time" not in stat:
            self.absent["proc.cpu.throttledSeconds"] = UNREPORTED
        if b"usage_usec" not in stat and self._usage is None:
            self.absent["cpu.ofLimit"] = "neither cpu.stat nor cpuacct.usage has the CPU time"

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        gauges = tick.gauges
        gauges["cgroup.cpu.limit"] = self.cpus
        stat = self._read_stat()
        periods, throttled = stat.get(b"nr_periods", 0), stat.get(b"nr_throttled", 0)
        if periods < self._periods or throttled < self._throttled:  # the folder was made anew
            self._periods, self._throttled = periods, throttled
        elif periods - self._periods >= MIN_PERIODS:
            gauges["proc.cpu.throttledPercent"] = (
                (throttled - self._throttled) * 100.0 / (periods - self._periods)
            )
            self._periods, self._throttled = periods, throttled
        if b"throttled_usec" in stat:
            tick.counters["proc.cpu.throttledSeconds"] = stat[b"throttled_usec"] / 1e6
        elif b"throttled_time" in stat:
            tick.counters["proc.cpu.throttledSeconds"] = stat[b"throttled_time"] / 1e9
        self._sample_use(tick, stat)

    def close(self) -> None:
        """Release what is open."""
        if self._stat is not None:
            self._stat.close()
        if self._usage is not None:
            self._usage.close()

    def _sample_use(self, tick: Tick, stat: dict[bytes, int]) -> None:
        if b"usage_usec" in stat:
            used_s = stat[b"usage_usec"] / 1e6
        elif self._usage is not None:
            used_s = int(self._usage.read()) / 1e9
        else:
            return
        if self._used_s is not None and self._mono_s is not None:
            elapsed_s = tick.mono_s - self._mono_s
            if elapsed_s < MIN_INTERVAL_S:
                return
            if used_s >= self._used_s:  # else the count began anew
                tick.gauges["cpu.ofLimit"] = (used_s - self._used_s) * 100.0 / (elapsed_s * self.cpus)
        self._used_s, self._mono_s = used_s, tick.mono_s

    def _read_stat(self) -> dict[bytes, int]:
        words = [] if self._stat is None else self._stat.read().split()
        return {name: int(number) for name, number in zip(words[::2], words[1::2], strict=False)}
