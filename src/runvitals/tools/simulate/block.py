"""The load of hosts and devices in a block of consecutive samples, derived from the scenario."""

from __future__ import annotations

from typing import get_args

import numpy as np
from numpy.typing import NDArray

from runvitals.tools.simulate.load import DeviceLoad, share
from runvitals.tools.simulate.noise import Floats, Noise, NoiseBlock
from runvitals.tools.simulate.scenario import Incident, IncidentKind, Phase, Scenario

SAMPLES = 256

_HEAT_C = 26.0
_STRAGGLER_CLOCK = 0.62
# The job's speed while it waits for one slow device.
_WITH_STRAGGLER, _WITH_HEAT = 0.7, 0.88

_TRAINING = 3  # the training's stream of noise

_FIELDS = ("busy", "work", "traffic", "filled", "cpu", "iowait", "read_mib_s", "written_mib_s", "speed")
# The load of every host in each phase: shares from 0 to 1, MiB/s, and the training's speed.
_PHASE_LOADS: dict[Phase, tuple[float, ...]] = {
    "warm-up": (0.04, 0.02, 0.0, 0.35, 0.30, 0.02, 900.0, 2.0, 0.0),
    "train": (0.98, 0.90, 0.85, 0.86, 0.22, 0.002, 120.0, 3.0, 1.0),
    "evaluate": (0.82, 0.55, 0.15, 0.72, 0.16, 0.002, 160.0, 1.0, 0.0),
    "checkpoint": (0.10, 0.04, 0.05, 0.86, 0.10, 0.03, 5.0, 2100.0, 0.0),
    # In a collective that never completes, the driver reports full utilisation at low power.
    "hang": (1.0, 0.18, 0.0, 0.86, 0.12, 0.0, 0.0, 1.0, 0.0),
    "restart": (0.04, 0.02, 0.0, 0.35, 0.30, 0.02, 1400.0, 2.0, 0.0),
}
_STALL_LOAD = (0.34, 0.30, 0.28, 0.86, 0.34, 0.16, 700.0, 1.0, 0.3)
_PHASES: tuple[Phase, ...] = get_args(Phase)
_TABLE = np.array([*(_PHASE_LOADS[phase] for phase in _PHASES), _STALL_LOAD])
_STALL_ROW = len(_PHASES)


class ScenarioBlock:
    """The load of hosts and devices in consecutive samples.

    Args:
        scenario: the course of the run.
        noise: the simulation's noise.
        first: number of the first sample.
        count: number of samples.
        dt_s: recorded seconds between two samples.
        lag_s: simulated seconds between two samples.

    Attributes:
        scenario_s: simulated time of each sample.
        filling: from 0 to 1 while the training is being set up.
        speed: speed of the training, as a share of its maximum.
        training_noise: four rows of noise.
        dt_s: recorded seconds since the previous sample; 0 at the run's first sample, where counters start.
    """

    def __init__(
        self, scenario: Scenario, noise: Noise, first: int, count: int, dt_s: float, lag_s: float
    ) -> None:
        self.ticks: NDArray[np.int64] = np.arange(first, first + count)
        self.scenario_s: Floats = self.ticks.astype(np.float64) * lag_s
        self.dt_s: Floats = np.where(self.ticks > 0, dt_s, 0.0)
        self.lag_s = lag_s
        self._scenario = scenario
        training_noise = NoiseBlock(noise, self.ticks, _TRAINING)
        self.training_noise: Floats = np.array([training_noise[row] for row in range(4)])
        self._noise = noise
        segments = [scenario.segment(float(at_s)) for at_s in self.scenario_s]
        self.phases: list[Phase] = [segment.phase for segment in segments]
        rows = np.array([_PHASES.index(phase) for phase in self.phases])
        stalled = np.zeros(count, dtype=bool)
        for _, during in self.incidents("data stall"):
            stalled |= during & (rows == _PHASES.index("train"))
        self.stalled: NDArray[np.bool_] = stalled
        levels = dict(zip(_FIELDS, _TABLE[np.where(stalled, _STALL_ROW, rows)].T, strict=True))
        self.busy, self.work, self.traffic, self.filled = (levels[name] for name in _FIELDS[:4])
        self.cpu, self.iowait, self.read_mib_s, self.written_mib_s = (levels[name] for name in _FIELDS[4:8])
        starts, ends = (
            np.array([getattr(segment, name) for segment in segments]) for name in ("start_s", "end_s")
        )
        setting_up = np.isin(rows, (_PHASES.index("warm-up"), _PHASES.index("restart")))
        self.filling: Floats = np.where(setting_up, (self.scenario_s - starts) / (ends - starts), 1.0)
        self.speed: Floats = levels["speed"] * self._job_speed()

    def incidents(self, kind: IncidentKind) -> list[tuple[Incident, NDArray[np.bool_]]]:
        """Return the incidents of a kind, each with a mask of the samples during which it lasts."""
        return [
            (incident, (self.scenario_s >= incident.start_s) & (self.scenario_s < incident.end_s))
            for incident in self._scenario.incidents
            if incident.kind == kind
        ]

    def progress(self, incident: Incident) -> Floats:
        """Return 0 at an incident's start to 1 at its end, for each sample."""
        return share((self.scenario_s - incident.start_s) / (incident.end_s - incident.start_s))

    def noise(self, stream: int) -> NoiseBlock:
        """Return the noise of these samples in one stream."""
        return NoiseBlock(self._noise, self.ticks, stream)

    def load(self, node: int, device: int, z: NoiseBlock) -> DeviceLoad:
        """Return the load of one device."""
        # A device that waits for another spins in a collective: busy, with little work.
        waits = np.where(self.speed > 0.0, self._job_speed(), 1.0)
        load = DeviceLoad(
            busy=share(self.busy + np.where(self.stalled, 0.3, 0.012) * z[40]),
            work=share(self.work * waits + 0.03 * z[41]),
            traffic=share(self.traffic * waits + 0.03 * z[42]),
            filled=share(self.filled * self.filling + np.where(self.filling < 1.0, 0.0, 0.004) * z[43]),
            heat_c=np.zeros(len(self.ticks)),
            clock=np.ones(len(self.ticks)),
            dt_s=self.dt_s,
            lag_s=self.lag_s,
        )
        for incident, _ in self.incidents("heat"):
            if (incident.node, incident.device) == (node, device):
                # A fan fails and is replaced; air temperature changes gradually.
                progress = self.progress(incident)
                load.heat_c = _HEAT_C * share(6.0 * np.minimum(progress, 1.0 - progress))
        for incident, during in self.incidents("straggler"):
            if (incident.node, incident.device) == (node, device):
                load.clock = np.where(during, _STRAGGLER_CLOCK, 1.0)
                load.work = np.where(during, self.work, load.work)  # the others wait for this one
        return load

    def _job_speed(self) -> Floats:
        """Return the job's speed as a share of its maximum, given slow or hot devices."""
        reached: Floats = np.ones(len(self.ticks))
        for _, during in self.incidents("straggler"):
            reached = np.where(during, reached * _WITH_STRAGGLER, reached)
        for incident, during in self.incidents("heat"):
            grown = share(4.0 * self.progress(incident))
            reached = np.where(during, reached * (1.0 - (1.0 - _WITH_HEAT) * grown), reached)
        return reached
