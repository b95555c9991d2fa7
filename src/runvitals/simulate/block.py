"""Part of the scenario as load on hosts and devices, sample by sample."""

from __future__ import annotations

from typing import get_args

import numpy as np
from numpy.typing import NDArray

from runvitals.simulate.load import Load, share
from runvitals.simulate.noise import Floats, Noise, Strand
from runvitals.simulate.scenario import Incident, Phase, Story, Trouble

SAMPLES = 256

_HEAT_C = 26.0
_STRAGGLER_CLOCK = 0.62
# What the whole job still reaches while it waits for one device.
_WITH_STRAGGLER, _WITH_HEAT = 0.7, 0.88

_TRAINING = 3  # the stream of noise that is the training's

_FIELDS = ("busy", "work", "traffic", "filled", "cpu", "iowait", "read_mib_s", "written_mib_s", "speed")
# What each phase asks of every host: shares from 0 to 1, MiB a second, and how fast the training then goes.
_ASKED: dict[Phase, tuple[float, ...]] = {
    "warm-up": (0.04, 0.02, 0.0, 0.35, 0.30, 0.02, 900.0, 2.0, 0.0),
    "train": (0.98, 0.90, 0.85, 0.86, 0.22, 0.002, 120.0, 3.0, 1.0),
    "evaluate": (0.82, 0.55, 0.15, 0.72, 0.16, 0.002, 160.0, 1.0, 0.0),
    "checkpoint": (0.10, 0.04, 0.05, 0.86, 0.10, 0.03, 5.0, 2100.0, 0.0),
    # In a collective that never ends: fully busy by the driver's word, and it takes little power.
    "hang": (1.0, 0.18, 0.0, 0.86, 0.12, 0.0, 0.0, 1.0, 0.0),
    "restart": (0.04, 0.02, 0.0, 0.35, 0.30, 0.02, 1400.0, 2.0, 0.0),
}
_IN_DATA_STALL = (0.34, 0.30, 0.28, 0.86, 0.34, 0.16, 700.0, 1.0, 0.3)
_PHASES: tuple[Phase, ...] = get_args(Phase)
_TABLE = np.array([*(_ASKED[phase] for phase in _PHASES), _IN_DATA_STALL])
_STALLED = len(_PHASES)


class ScenarioBlock:
    """What is asked of hosts and devices in a row of samples.

    Args:
        story: the plan.
        noise: of the simulation.
        first: number of the first sample.
        count: of samples.
        dt_s: seconds between two samples, as they are recorded.
        lag_s: seconds of the story between two samples.

    Attributes:
        story_s: how far the story is at each sample.
        filling: from 0 to 1 while the training is being set up.
        speed: of the training, as a share of its best.
        whims: noise for the training, four rows.
        dt_s: seconds since the sample before; 0 at the first of all, with which counters begin.
    """

    def __init__(self, story: Story, noise: Noise, first: int, count: int, dt_s: float, lag_s: float) -> None:
        self.ticks: NDArray[np.int64] = np.arange(first, first + count)
        self.story_s: Floats = self.ticks.astype(np.float64) * lag_s
        self.dt_s: Floats = np.where(self.ticks > 0, dt_s, 0.0)
        self.lag_s = lag_s
        self._story = story
        whims = Strand(noise, self.ticks, _TRAINING)
        self.whims: Floats = np.array([whims[row] for row in range(4)])
        self._noise = noise
        segments = [story.segment(float(at_s)) for at_s in self.story_s]
        self.phases: list[Phase] = [segment.phase for segment in segments]
        rows = np.array([_PHASES.index(phase) for phase in self.phases])
        stalled = np.zeros(count, dtype=bool)
        for _, during in self.trouble("data stall"):
            stalled |= during & (rows == _PHASES.index("train"))
        self.stalled: NDArray[np.bool_] = stalled
        asked = dict(zip(_FIELDS, _TABLE[np.where(stalled, _STALLED, rows)].T, strict=True))
        self.busy, self.work, self.traffic, self.filled = (asked[name] for name in _FIELDS[:4])
        self.cpu, self.iowait, self.read_mib_s, self.written_mib_s = (asked[name] for name in _FIELDS[4:8])
        starts, ends = (np.array([getattr(one, name) for one in segments]) for name in ("start_s", "end_s"))
        setting_up = np.isin(rows, (_PHASES.index("warm-up"), _PHASES.index("restart")))
        self.filling: Floats = np.where(setting_up, (self.story_s - starts) / (ends - starts), 1.0)
        self.speed: Floats = asked["speed"] * self._held_back()

    def trouble(self, kind: Trouble) -> list[tuple[Incident, NDArray[np.bool_]]]:
        """The incidents of a kind, and at which samples they last."""
        return [
            (one, (self.story_s >= one.start_s) & (self.story_s < one.end_s))
            for one in self._story.incidents
            if one.kind == kind
        ]

    def progress(self, incident: Incident) -> Floats:
        """From 0 at an incident's beginning to 1 at its end."""
        return share((self.story_s - incident.start_s) / (incident.end_s - incident.start_s))

    def strand(self, stream: int) -> Strand:
        """Noise of these samples."""
        return Strand(self._noise, self.ticks, stream)

    def load(self, node: int, device: int, z: Strand) -> Load:
        """What is asked of one device."""
        # Whoever waits for another spins in a collective: busy, with little work.
        waits = np.where(self.speed > 0.0, self._held_back(), 1.0)
        load = Load(
            busy=share(self.busy + np.where(self.stalled, 0.3, 0.012) * z[40]),
            work=share(self.work * waits + 0.03 * z[41]),
            traffic=share(self.traffic * waits + 0.03 * z[42]),
            filled=share(self.filled * self.filling + np.where(self.filling < 1.0, 0.0, 0.004) * z[43]),
            heat_c=np.zeros(len(self.ticks)),
            clock=np.ones(len(self.ticks)),
            dt_s=self.dt_s,
            lag_s=self.lag_s,
        )
        for incident, _ in self.trouble("heat"):
            if (incident.node, incident.device) == (node, device):
                # A fan fails, and is exchanged; the air does not change from one second to the next.
                progress = self.progress(incident)
                load.heat_c = _HEAT_C * share(6.0 * np.minimum(progress, 1.0 - progress))
        for incident, during in self.trouble("straggler"):
            if (incident.node, incident.device) == (node, device):
                load.clock = np.where(during, _STRAGGLER_CLOCK, 1.0)
                load.work = np.where(during, self.work, load.work)  # it is the one the others wait for
        return load

    def _held_back(self) -> Floats:
        """What the job reaches of its best for the trouble of single devices."""
        reached: Floats = np.ones(len(self.ticks))
        for _, during in self.trouble("straggler"):
            reached = np.where(during, reached * _WITH_STRAGGLER, reached)
        for incident, during in self.trouble("heat"):
            grown = share(4.0 * self.progress(incident))
            reached = np.where(during, reached * (1.0 - (1.0 - _WITH_HEAT) * grown), reached)
        return reached
