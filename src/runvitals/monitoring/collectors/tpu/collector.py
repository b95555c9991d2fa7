"""The collector of Google TPUs: metrics that the programs using them serve."""

from __future__ import annotations

from runvitals.monitoring.collectors.base import Every
from runvitals.monitoring.collectors.plumbing.background import BackgroundReader
from runvitals.monitoring.collectors.plumbing.missing_readings import ExpectedReadings, explain
from runvitals.monitoring.collectors.plumbing.run_processes import RunProcesses
from runvitals.monitoring.collectors.tpu import metrics
from runvitals.monitoring.collectors.tpu.chips import devices_per_chip, users
from runvitals.monitoring.collectors.tpu.grpc import GrpcConnection
from runvitals.monitoring.collectors.tpu.runtime import TpuRuntime, ports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runvitals.monitoring.collectors.base import Scope, Tick
    from runvitals.monitoring.collectors.tpu.chips import TpuChip
    from runvitals.monitoring.collectors.tpu.metric_response import TpuDistribution, TpuReading

# About once a second at most; on a busy machine, a tick may come a little early after a late one.
EVERY_S = 0.8
# A program responds within a few ms, unless it is being stopped. Later responses go into the next tick.
PATIENCE_S = 0.02
TIMEOUT_S = 2.0
DISTRIBUTIONS_EVERY_S = 10.0
USERS_EVERY_S = 10.0
UNREPORTED = "not reported by the program that uses the device"
ONLY_INSIDE = dict.fromkeys(
    ("tensorcoreUtilization", "iciLinkHealth", "throttleScore"),
    "libtpu reports it only in the program that has loaded it, and loading it twice may take the TPU away",
)


class Tpu:
    """`tpu.{i}.…` of the devices in use by programs on this host, and distributions of their transfers.

    Indices follow the order of the runtime's device ids, which on a slice of several hosts are numbered
    across the whole slice.

    Args:
        chips: of this host; [] if they are not visible.
        environ: the run's environment, for the ports and the slice's name.
        proc: path of procfs in our PID namespace.
    """

    name = "tpu"

    def __init__(
        self, scope: Scope, chips: Sequence[TpuChip], environ: Mapping[str, str], proc: str = "/proc"
    ) -> None:
        self.absent: dict[str, str] = dict(ONLY_INSIDE)
        self._chips = list(chips)
        self._environ = dict(environ)
        self._proc = proc
        self._run = RunProcesses(scope, proc)
        self._per_chip = devices_per_chip(self._chips)
        self._runtimes = [
            TpuRuntime(GrpcConnection(port, timeout_s=TIMEOUT_S)) for port in ports(environ, len(self._chips))
        ]
        self._ids: list[int] = []
        self._used: set[str] | None = None
        self._cumulative: dict[tuple[str, str], TpuDistribution] = {}
        self._distributions = Every(DISTRIBUTIONS_EVERY_S)
        self._users = Every(USERS_EVERY_S)
        self._expected = ExpectedReadings((*metrics.OF_DEVICES.values(), "memoryUsage"))
        self._reader = BackgroundReader(self._read, every_s=EVERY_S, patience_s=PATIENCE_S)
        self.facts: dict[str, object] = self._facts()

    @property
    def pending(self) -> bool:
        """Whether a read is in progress."""
        return self._reader.pending

    def sample(self, tick: Tick) -> None:
        """Write the newest readings; raise Hung after half a minute with neither a response nor an error."""
        self._reader.sample(tick)

    def close(self) -> None:
        """Release what is open."""
        self._reader.close()
        if not self._reader.pending:  # otherwise the thread closes it after its call
            for runtime in self._runtimes:
                runtime.close()

    # -- in the thread

    def _read(self, tick: Tick) -> None:
        names = [*metrics.OF_DEVICES, metrics.QUEUE]
        if self._distributions.due(tick.mono_s):
            names += metrics.DISTRIBUTIONS
        by_metric: dict[str, list[TpuReading]] = {}
        for runtime in self._runtimes:
            for name, readings in runtime.read(names, tick.mono_s).items():
                by_metric.setdefault(name, []).extend(readings)
        self._number(by_metric)
        self._write_devices(tick, by_metric)
        for reading in by_metric.get(metrics.QUEUE, ()):
            if reading.value is not None:
                tick.gauges[f"tpu.hloQueueSize.{metrics.label(reading.labels) or 0}"] = reading.value
        for name, (key, unit) in metrics.DISTRIBUTIONS.items():
            self._write_distributions(tick, name, key, unit, by_metric.get(name, ()))
        if self._users.due(tick.mono_s):
            self._used = users(self._chips, self._run.pids(tick.mono_s), self._proc)
        self._update_facts(tick, bool(by_metric))

    def _number(self, readings: Mapping[str, Sequence[TpuReading]]) -> None:
        """Learn the device ids.

        Programs that start one after another must not shift the indices if the ids themselves show which
        device of the host it is.
        """
        ids = {
            reading.device
            for name in (metrics.MEMORY_USED, metrics.MEMORY_TOTAL)
            for reading in readings.get(name, ())
            if reading.device is not None
        }
        on_host = len(self._chips) * self._per_chip
        if self._ids or ids:
            ids.update(self._ids)
            self._ids = list(range(on_host)) if ids and max(ids) < on_host else sorted(ids)

    def _write_devices(self, tick: Tick, readings: Mapping[str, Sequence[TpuReading]]) -> None:
        by_metric = {name: _of_devices(readings.get(name, ())) for name in metrics.OF_DEVICES}
        devices = sorted(by_metric[metrics.MEMORY_USED] or by_metric[metrics.MEMORY_TOTAL])
        for name, key in metrics.OF_DEVICES.items():
            for index, value in self._by_index(by_metric[name], devices).items():
                tick.gauges[f"tpu.{index}.{key}"] = value
        for index in range(len(self._ids)):
            used = tick.gauges.get(f"tpu.{index}.memoryUsageBytes")
            total = tick.gauges.get(f"tpu.{index}.hbmCapacityTotal")
            if used is not None and total:
                tick.gauges[f"tpu.{index}.memoryUsage"] = used * 100.0 / total

    def _by_index(self, of_device: Mapping[int, float], devices: Sequence[int]) -> dict[int, float]:
        """Map device ids to our indices. A value reported once per chip is used for both of its devices.

        Args:
            of_device: values by device id.
            devices: the ids of the devices that report their memory now.
        """
        reported = sorted(of_device)
        if len(devices) == 2 * len(reported) and (self._per_chip == 2 or not self._chips):
            of_device = {
                device: of_device[reported[position // 2]] for position, device in enumerate(devices)
            }
        if not self._ids:  # a runtime without memory metrics
            return {position: of_device[device] for position, device in enumerate(reported)}
        place_of = {device: position for position, device in enumerate(self._ids)}
        return {place_of[device]: value for device, value in of_device.items() if device in place_of}

    def _write_distributions(
        self, tick: Tick, metric: str, key: str, unit: str, readings: Sequence[TpuReading]
    ) -> None:
        for name, distribution in metrics.distributions(readings).items():
            added = distribution
            if ".cumulative." in metric:
                before = self._cumulative.get((metric, name))
                self._cumulative[metric, name] = distribution
                added = distribution if before is None else distribution.since(before)
            if added.count:
                metrics.write(tick.gauges, key, unit, name, added)

    # -- facts and reasons

    def _update_facts(self, tick: Tick, answered: bool) -> None:
        facts = self._facts()
        if facts != self.facts:
            self.facts = facts
        absent = dict(ONLY_INSIDE)
        if not answered:
            failures = "; ".join(each.failure for each in self._runtimes[:3] if each.failure)
            absent["tpu"] = (
                "no program reports TPU metrics: libtpu serves them while a program runs, and a container "
                f"needs the host's network (--net=host). {failures}"
            ).strip()
        else:
            absent.update(self._missing(tick))
        if absent != self.absent:
            self.absent = absent

    def _missing(self, tick: Tick) -> dict[str, str]:
        """Why readings of devices are missing that programs report at all."""
        missing: dict[int, dict[str, str]] = {}
        for index in range(len(self._ids)):
            prefix = f"tpu.{index}."
            names = [key.removeprefix(prefix) for key in tick.gauges if key.startswith(prefix)]
            self._expected.note(index, names, tick.mono_s)
            missing[index] = dict.fromkeys(self._expected.missing(index), UNREPORTED)
        return explain(missing, "TPU")

    def _facts(self) -> dict[str, object]:
        chips = []
        for chip in self._chips:
            used = chip.node in self._used if self._used is not None and chip.node else None
            chips.append({**chip.fact(), "used": used})
        first = self._chips[0] if self._chips else None
        fact: dict[str, object] = {"vendor": "Google", "count": len(chips)}
        if first is not None and first.generation:
            fact |= {
                "name": first.generation,
                "hbm_gib": first.memory_gib,
                "devices_per_chip": first.devices,
            }
        if chips:
            fact["chips"] = chips
        else:
            del fact["count"]
        if self._ids:
            fact["devices"] = [{"index": position, "id": device} for position, device in enumerate(self._ids)]
        for variable, name in (("TPU_ACCELERATOR_TYPE", "accelerator_type"), ("TPU_WORKER_ID", "worker_id")):
            if self._environ.get(variable):
                fact[name] = self._environ[variable]
        return {"tpu": fact}


def _of_devices(readings: Sequence[TpuReading]) -> dict[int, float]:
    return {
        reading.device: reading.value
        for reading in readings
        if reading.device is not None and reading.value is not None
    }
