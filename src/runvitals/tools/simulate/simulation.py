"""A simulated run, from its first sample to its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from runvitals.journal import frames
from runvitals.tools.simulate.block import SAMPLES, ScenarioBlock
from runvitals.tools.simulate.node import Node, RunLocation
from runvitals.tools.simulate.noise import Noise
from runvitals.tools.simulate.profiles import Profile
from runvitals.tools.simulate.scenario import Incident, Phase, Scenario, plan
from runvitals.tools.simulate.training import SimulatedTraining, TrainingRow

_SIGINT, _SIGTERM = 2, 15


@dataclass(frozen=True, slots=True)
class SimulationTotals:
    """Counts of written samples (of all hosts), values and `log()` rows, and of lost records."""

    samples: int
    values: int
    rows: int
    lost: int


class Simulation:
    """Writes a simulated run into the journals of a run's folder. The same arguments give the same records.

    Args:
        profile: the machine of every host.
        nodes: number of hosts.
        scenario_s: simulated duration in seconds.
        speed: simulated seconds per recorded second.
        seed: the seed of noise and incidents.
        location: the run, and where to write it.
        about: name, tags … to record.
        settings: the settings to record.

    Example:
        >>> simulation = Simulation(Profile.parse("h100x8"), 1, 600.0, 1.0, 0, location, {}, {})
        >>> simulation.play()
        True
        >>> simulation.end("finished")
        SimulationTotals(samples=600, values=174000, rows=380, lost=0)
    """

    def __init__(
        self,
        profile: Profile,
        nodes: int,
        scenario_s: float,
        speed: float,
        seed: int,
        location: RunLocation,
        about: Mapping[str, object],
        settings: Mapping[str, object],
    ) -> None:
        self.location = location
        self._lag_s = location.interval_s * speed
        self._count = max(2, int(scenario_s / self._lag_s))
        self._noise = Noise(seed)
        self.scenario: Scenario = plan(scenario_s, nodes, profile.count, seed)
        self._training = SimulatedTraining(nodes * profile.ranks, profile.kind.step_s, scenario_s)
        self._ranks = profile.ranks
        self._nodes = [Node(location, profile, number, nodes) for number in range(nodes)]
        self._alive = list(self._nodes)
        self._started_incidents: set[Incident] = set()
        self._phase: Phase = "warm-up"
        self._time_ms = location.start_ms
        self._samples = self._rows = self._lost = 0
        notice = (
            f"simulated by `runvitals simulate --profile {profile.name}`, seed {seed}: nothing is measured"
        )
        for node in self._nodes:
            node.begin(about, settings, notice)
            node.start(location.start_ms, node.number * self._ranks, nodes * self._ranks)
        self._head.note(frames.INFO, location.start_ms, config=self._training.config)
        self._head.print(location.start_ms, f"{notice}\nbuilding the model on {nodes} × {profile.title}\n")

    @property
    def _head(self) -> Node:
        """The host of rank 0."""
        return self._nodes[0]

    def play(self, wait: Callable[[int], bool] = lambda tick: True) -> bool:
        """Write all samples; return whether all were written.

        Args:
            wait: called with each sample's number before it is written. For a live run it waits until the
                sample is due; False stops the simulation.
        """
        interval_s = self.location.interval_s
        for first in range(0, self._count, SAMPLES):
            count = min(SAMPLES, self._count - first)
            block = ScenarioBlock(self.scenario, self._noise, first, count, interval_s, self._lag_s)
            for node in self._alive:
                node.prepare(block)
            for index in range(count):
                if not wait(first + index):
                    return False
                self._time_ms = self.location.start_ms + round((first + index) * interval_s * 1000.0)
                self._step(block, index)
        return True

    def note_alive(self, now_ms: int) -> None:
        """Record that the hosts are there at this time, though their samples are of earlier times."""
        for node in self._alive:
            node.note_alive(now_ms)

    @property
    def shows_life(self) -> bool:
        """Whether lists of runs see that the hosts are there."""
        return all(node.shows_life for node in self._alive)

    def end(self, state: str) -> SimulationTotals:
        """Record the end: `finished`, or `stopped` by the user."""
        code, signal = (0, None) if state == "finished" else (None, _SIGINT)
        for node in self._alive:
            node.end(self._time_ms, state, code, signal)
        self._lost += sum(journal.lost for node in self._nodes for journal in node.journals)
        for node in self._nodes:
            node.close()
        values = sum(node.values for node in self._nodes)
        return SimulationTotals(self._samples, values, self._rows, self._lost)

    def _step(self, block: ScenarioBlock, index: int) -> None:
        scenario_s, phase = float(block.scenario_s[index]), block.phases[index]
        for incident in self.scenario.incidents:
            if incident.start_s <= scenario_s < incident.end_s and incident not in self._started_incidents:
                self._started_incidents.add(incident)
                self._begin_incident(incident)
        if phase != self._phase:
            self._change_phase(self._phase, phase)
            self._phase = phase
        row = self._training.advance(block, index)
        for node in self._alive:
            node.sample(self._time_ms, index)
        self._samples += len(self._alive)
        if row is not None:
            self._log(row, scenario_s)

    def _log(self, row: TrainingRow, scenario_s: float) -> None:
        journal = self._head.processes[0].journal
        journal.json(frames.HISTORY, {"t": self._time_ms, "step": row.step, "data": row.data})
        self._rows += 1
        line = self._training.line(row, scenario_s)
        if line is not None:
            self._head.print(self._time_ms, line)

    def _change_phase(self, before: Phase, phase: Phase) -> None:
        """Print and record the change to another phase."""
        if phase == "checkpoint":
            self._head.print(self._time_ms, self._training.save())
        elif phase == "restart" and before == "hang":
            self._head.print(self._time_ms, "collective timed out after 600 s; ending all ranks\n", 2)
            self._restart(None, None, "a host was lost")

    def _begin_incident(self, incident: Incident) -> None:
        """Record what an incident causes besides changed readings: output, alerts, restarts."""
        if incident.kind == "data stall":
            text = "the data loader is waiting for its files"
            self._alert("data stall", text, "warning")
            self._head.print(self._time_ms, f"warning: {text}\n", 2)
        elif incident.kind == "out of memory":
            node = self._nodes[incident.node]
            killed = incident.device % self._ranks
            text = f"rank {node.processes[killed].rank} on {node.name} ended by SIGKILL; ending all ranks\n"
            self._head.print(self._time_ms, text, 2)
            self._restart(node, killed, "a rank ran out of memory and was killed")
        elif incident.kind == "lost node":
            self._alive.pop()
            self._training.ranks -= self._ranks

    def _restart(self, node: Node | None, killed: int | None, why: str) -> None:
        """End all ranks, and restart those of the remaining hosts from the last checkpoint.

        Args:
            node, killed: the host and the index of the rank that the kernel killed, if any.
        """
        for alive in self._alive:
            alive.stop(self._time_ms, None, _SIGTERM, killed if alive is node else None)
        for alive in self._alive:
            alive.start(self._time_ms, alive.number * self._ranks, self._training.ranks)
        line = self._training.resume()
        self._head.print(self._time_ms, line)
        self._alert("restarted", f"{why}: {line.strip()}", "warning")

    def _alert(self, title: str, text: str, level: str) -> None:
        """Record an alert, as `run.alert()` does."""
        alert = {"t": self._time_ms, "name": "alert", "level": level, "title": title, "text": text}
        self._head.processes[0].journal.json(frames.EVENT, alert)
