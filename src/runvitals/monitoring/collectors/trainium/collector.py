"""The collector of AWS Trainium and Inferentia: reports of neuron-monitor, and the driver's files in /sys."""

from __future__ import annotations

import os

from runvitals.monitoring.collectors.base import Tick, read_text
from runvitals.monitoring.collectors.plumbing.background import BackgroundReader, Hung
from runvitals.monitoring.collectors.plumbing.run_processes import RunProcesses
from runvitals.monitoring.collectors.plumbing.tool import Tool, ToolFailed, find
from runvitals.monitoring.collectors.trainium import inventory, readings, sysfs
from runvitals.monitoring.collectors.trainium.counters import RunningTotals
from runvitals.monitoring.collectors.trainium.device_facts import describe
from runvitals.monitoring.collectors.trainium.locations import BIN
from runvitals.monitoring.collectors.trainium.monitor import NeuronMonitor
from runvitals.monitoring.collectors.trainium.report import GROUPS, SYSTEM_GROUPS
from runvitals.monitoring.collectors.trainium.run_processes import RunProcessFilter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from runvitals.monitoring.collectors.base import Scope

DRIVER_EVERY_S = 5.0
# How long a tick waits for the driver. Its files take a few ms; those of a device in reset take seconds.
PATIENCE_S = 0.05
INVENTORY_TIMEOUT_S = 20.0
INVENTORY_EVERY_S = 60.0


def open_trainium(scope: Scope, monitor: str | None) -> Trainium:
    """Return the collector, with the programs that are on this machine.

    Args:
        scope: what the collector is to observe.
        monitor: path of neuron-monitor, None if it is not installed.
    """
    config = scope.options.get("neuron_monitor_config")
    program = None if monitor is None else NeuronMonitor(monitor, scope.interval_s, config)
    ls = find("neuron-ls", BIN + "neuron-ls", scope.path(BIN + "neuron-ls"))
    return Trainium(scope, program, ls, os.environ)


class Trainium:
    """`trn.…`: cores, memory, executions and errors of all Neuron devices; `trn.process.…`: the run's part.

    Args:
        monitor: neuron-monitor, None if it is not installed; then only the driver's values are available.
        ls: path of neuron-ls, None if it is not installed.
        environ: the run's environment, for NEURON_PROCESS_TAG.
    """

    name = "trainium"

    def __init__(
        self,
        scope: Scope,
        monitor: NeuronMonitor | None,
        ls: str | None,
        environ: Mapping[str, str],
    ) -> None:
        self.facts: dict[str, object] = {}
        self.absent: dict[str, str] = {}
        self._monitor = monitor
        # Why neuron-monitor fails; "" while it works, and until its first report.
        self._failure = "" if monitor else f"neuron-monitor is not on PATH and not in {BIN[:-1]}: install it"
        self._own = RunProcessFilter(environ.get("NEURON_PROCESS_TAG", ""))
        self._run = RunProcesses(scope)
        self._processes = readings.HeldReadings(GROUPS)
        self._system = readings.HeldReadings(SYSTEM_GROUPS)
        self._totals = RunningTotals()
        self._report: dict[str, Any] = {}
        self._gauges: dict[str, float] = {}
        self._heard_s: float | None = None
        self._gap_s = monitor.period_s if monitor else 0.0
        self._version = scope.path(sysfs.VERSION)
        self._folder = sysfs.find_folder(scope)
        self._ids: set[int] = set()
        self._lost: set[int] = set()
        self._driver: dict[str, Any] = {}
        self._driver_failure = ""
        self._driver_has_errors = self._folder is not None and _has_errors(self._folder)
        self._reader = (
            BackgroundReader(self._read_driver, every_s=DRIVER_EVERY_S, patience_s=PATIENCE_S)
            if self._folder
            else None
        )
        self._ls = ls
        self._ways = list(inventory.ARGUMENTS) if ls else []
        self._tool: Tool | None = None
        self._listed: list[dict[str, Any]] = []

    @property
    def pending(self) -> bool:
        """Whether the first report of neuron-monitor has not arrived yet."""
        return self._monitor is not None and self._heard_s is None and not self._failure

    def sample(self, tick: Tick) -> None:
        """Write the values of neuron-monitor and the driver."""
        self._take_inventory(tick.mono_s)
        if self._monitor is not None:
            self._hear(self._monitor, tick.mono_s)
            tick.counters["trn.malformed_reports"] = float(self._monitor.malformed)
        if self._is_fresh(tick.mono_s):
            tick.gauges.update(self._gauges)
        self._totals.write(tick.counters)
        if self._reader is not None:
            try:
                self._reader.sample(tick)
                self._driver_failure = ""
            except Hung as hung:  # neuron-monitor may still work
                self._driver_failure = str(hung)
        self._update_facts()

    def close(self) -> None:
        """Release what is open."""
        for each in (self._monitor, self._reader, self._tool):
            if each is not None:
                each.close()

    # -- neuron-monitor

    def _hear(self, monitor: NeuronMonitor, mono_s: float) -> None:
        try:
            reports = monitor.reports(mono_s)
        except ToolFailed as failed:
            self._failure = str(failed)
            self._gauges, self._heard_s, self._gap_s = {}, None, monitor.period_s
            return
        for report in reports:
            if self._driver_has_errors:
                report["system"].pop("ecc", None)
            readings.count(self._totals, report, first=not self._report)
            self._report = report
            self._read(report, mono_s)
        if reports:
            self._failure = ""
            if self._heard_s is not None and mono_s > self._heard_s:
                self._gap_s = max(mono_s - self._heard_s, 1.0)
            self._heard_s = mono_s

    def _is_fresh(self, mono_s: float) -> bool:
        return self._heard_s is not None and mono_s - self._heard_s <= readings.HELD_PERIODS * self._gap_s

    def _read(self, report: Mapping[str, Any], mono_s: float) -> None:
        """Take a report's values, and those of earlier reports that are still valid."""
        gauges: dict[str, float] = {}
        processes = self._processes.take(report["processes"], mono_s)
        readings.write(gauges, processes)
        own = self._own.choose(processes, self._run.pids(mono_s))
        readings.write_run(gauges, own)
        (system,) = self._system.take([{**report["system"], "errors": report["errors"]}], mono_s)
        readings.write_system(gauges, system)
        self._gauges = gauges

    # -- the driver, in the thread

    def _read_driver(self, tick: Tick) -> None:
        assert self._folder is not None
        devices = sysfs.find_devices(self._folder)
        self._notice_losses(tick, {device.index for device in devices})
        sysfs.write(tick.gauges, tick.counters, devices, memory=bool(self._failure))
        driver = {
            "devices": [device.fact() for device in devices],
            "instance_type": sysfs.instance_type(devices),
            "version": read_text(self._version),
        }
        if driver != self._driver:
            self._driver = driver

    def _notice_losses(self, tick: Tick, ids: set[int]) -> None:
        lost = (self._ids | self._lost) - ids
        for name, level, indices, words in (
            ("device_lost", "error", lost - self._lost, "is gone from the driver"),
            ("device_back", "info", self._lost - lost, "is back"),
        ):
            for index in sorted(indices):
                text = f"Neuron device {index} {words}"
                tick.events.append({"name": name, "level": level, "device": f"neuron{index}", "text": text})
        self._ids, self._lost = ids, lost

    # -- neuron-ls

    def _take_inventory(self, mono_s: float) -> None:
        """Run neuron-ls once; if it fails, with the arguments of other releases."""
        if not self._ways:
            return
        if self._tool is None:
            self._tool = Tool([str(self._ls), *self._ways[0]], INVENTORY_EVERY_S, INVENTORY_TIMEOUT_S)
        try:
            output = self._tool.output(mono_s)
            if output is None:
                return
            self._listed = inventory.parse(output)
            self._ways = []
        except (ToolFailed, ValueError):  # the driver and the reports have to do
            self._ways = self._ways[1:]
        self._tool.close()
        self._tool = None

    # -- facts and reasons

    def _update_facts(self) -> None:
        """Replace `facts` and `absent` if they have changed."""
        fact = describe(self._report, self._driver, self._listed, self._own)
        facts: dict[str, object] = {"trainium": fact} if fact else {}
        if facts != self.facts:
            self.facts = facts
        absent = self._reasons()
        if absent != self.absent:
            self.absent = absent

    def _reasons(self) -> dict[str, str]:
        reasons: dict[str, str] = {}
        if self._failure:
            reasons["neuron-monitor"] = self._failure
        if self._driver_failure:
            reasons["driver"] = self._driver_failure
        malformed = self._monitor.malformed if self._monitor else 0
        if malformed and self._monitor:
            # A new text only when the number has doubled.
            at_least = 1 << (malformed.bit_length() - 1)
            complaint = self._monitor.complaint
            reasons["reports"] = f"{at_least} or more lines of neuron-monitor were none: {complaint}"
        if self._report.get("hardware", {}).get("neuron_device_count") == 0:
            reasons["devices"] = "neuron-monitor sees no device: load the driver (modprobe neuron)"
        reasons.update(_errors(self._report))
        if self._own.unknown:
            reasons["trn.process"] = (
                f"none of the {self._own.unknown} processes in neuron-monitor's report is known to be the "
                "run's: set NEURON_PROCESS_TAG, or start the container with --pid=host"
            )
        if self._lost:
            reasons["devices"] = f"gone from the driver: {', '.join(map(str, sorted(self._lost)))}"
        return reasons


def _errors(report: Mapping[str, Any]) -> dict[str, str]:
    """Errors reported by neuron-monitor; for each group that of the first process."""
    errors: dict[str, str] = {}
    for process in report.get("processes", ()):
        if "error" in process:
            errors.setdefault("process", process["error"])
        for group, error in process.get("errors", {}).items():
            remedy = " (start the container with --pid=host)" if "/proc/" in error else ""
            errors.setdefault(group, error + remedy)
    return {**errors, **report.get("errors", {})}


def _has_errors(folder: str) -> bool:
    """Return whether the driver has files with error counts. Looks only for their names."""
    return any(
        os.path.exists(f"{device.folder}/stats/hardware/{kind}")
        for device in sysfs.find_devices(folder)
        for kind in sysfs.ECC
    )
