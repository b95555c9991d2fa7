"""A whole simulated run, from its first sample to its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from runvitals.journal import frames
from runvitals.simulate.block import SAMPLES, ScenarioBlock
from runvitals.simulate.node import Node, RunLocation
from runvitals.simulate.noise import Noise
from runvitals.simulate.profiles import Profile
from runvitals.simulate.scenario import Incident, Phase, Story, plan
from runvitals.simulate.training import Training, TrainingRow

_SIGINT, _SIGTERM = 2, 15


@dataclass(frozen=True, slots=True)
class Totals:
    """What was written: samples (of all hosts), values, `log()` rows, and lost records."""

    samples: int
    values: int
    rows: int
    lost: int


class Simulation:
    """A run that never was, in the journals of a run's folder. The same arguments give the same records.

    Args:
        profile: the machine of every host.
        nodes: how many hosts.
        story_s: seconds of the story.
        speed: seconds of the story for each second on the record.
        seed: of the noise and of the troubles.
        place: which run, and where to.
        about: name, tags … as they are recorded.
        settings: as they are recorded.

    Example:
        >>> simulation = Simulation(Profile.parse("h100x8"), 1, 600.0, 1.0, 0, place, {}, {})
        >>> simulation.play()
        True
        >>> simulation.end("finished")
        Totals(samples=600, values=174000, rows=380, lost=0)
    """

    def __init__(
        self,
        profile: Profile,
        nodes: int,
        story_s: float,
        speed: float,
        seed: int,
        place: RunLocation,
        about: Mapping[str, object],
        settings: Mapping[str, object],
    ) -> None:
        self.place = place
        self._lag_s = place.interval_s * speed
        self._count = max(2, int(story_s / self._lag_s))
        self._noise = Noise(seed)
        self.story: Story = plan(story_s, nodes, profile.count, seed)
        self._training = Training(nodes * profile.ranks, profile.kind.step_s, story_s)
        self._ranks = profile.ranks
        self._nodes = [Node(place, profile, number, nodes) for number in range(nodes)]
        self._alive = list(self._nodes)
        self._begun: set[Incident] = set()
        self._phase: Phase = "warm-up"
        self._time_ms = place.start_ms
        self._samples = self._rows = self._lost = 0
        told = f"simulated by `runvitals simulate --profile {profile.name}`, seed {seed}: nothing is measured"
        for node in self._nodes:
            node.begin(about, settings, told)
            node.start(place.start_ms, node.number * self._ranks, nodes * self._ranks)
        self._head.note(frames.INFO, place.start_ms, config=self._training.config)
        self._head.print(place.start_ms, f"{told}\nbuilding the model on {nodes} × {profile.title}\n")

    @property
    def _head(self) -> Node:
        """The host of rank 0."""
        return self._nodes[0]

    def play(self, wait: Callable[[int], bool] = lambda tick: True) -> bool:
        """Write every sample; True when all are written.

        Args:
            wait: called with each sample's number before it is written. A live one returns when it is due;
                False ends the play.
        """
        interval_s = self.place.interval_s
        for first in range(0, self._count, SAMPLES):
            count = min(SAMPLES, self._count - first)
            block = ScenarioBlock(self.story, self._noise, first, count, interval_s, self._lag_s)
            for node in self._alive:
                node.look_ahead(block)
            for place in range(count):
                if not wait(first + place):
                    return False
                self._time_ms = self.place.start_ms + round((first + place) * interval_s * 1000.0)
                self._step(block, place)
        return True

    def end(self, state: str) -> Totals:
        """Write the end: `finished`, or `stopped` by a person."""
        code, signal = (0, None) if state == "finished" else (None, _SIGINT)
        for node in self._alive:
            node.end(self._time_ms, state, code, signal)
        self._lost += sum(journal.lost for node in self._nodes for journal in node.journals)
        for node in self._nodes:
            node.close()
        values = sum(node.values for node in self._nodes)
        return Totals(self._samples, values, self._rows, self._lost)

    def _step(self, block: ScenarioBlock, place: int) -> None:
        story_s, phase = float(block.story_s[place]), block.phases[place]
        for incident in self.story.incidents:
            if incident.start_s <= story_s < incident.end_s and incident not in self._begun:
                self._begun.add(incident)
                self._strike(incident)
        if phase != self._phase:
            self._turn(self._phase, phase)
            self._phase = phase
        row = self._training.advance(block, place)
        for node in self._alive:
            node.sample(self._time_ms, place)
        self._samples += len(self._alive)
        if row is not None:
            self._log(row, story_s)

    def _log(self, row: TrainingRow, story_s: float) -> None:
        journal = self._head.processes[0].journal
        journal.json(frames.HISTORY, {"t": self._time_ms, "step": row.step, "data": row.data})
        self._rows += 1
        line = self._training.line(row, story_s)
        if line is not None:
            self._head.print(self._time_ms, line)

    def _turn(self, before: Phase, phase: Phase) -> None:
        """Another phase begins."""
        if phase == "checkpoint":
            self._head.print(self._time_ms, self._training.save())
        elif phase == "restart" and before == "hang":
            self._head.print(self._time_ms, "collective timed out after 600 s; ending all ranks\n", 2)
            self._restart(None, None, "a host is lost")

    def _strike(self, incident: Incident) -> None:
        """A trouble begins; what of it is seen beside the numbers."""
        if incident.kind == "data stall":
            text = "the data loader waits for its files"
            self._alert("data stall", text, "warning")
            self._head.print(self._time_ms, f"warning: {text}\n", 2)
        elif incident.kind == "out of memory":
            node = self._nodes[incident.node]
            killed = incident.device % self._ranks
            text = f"rank {node.processes[killed].rank} on {node.name} ended by SIGKILL; ending all ranks\n"
            self._head.print(self._time_ms, text, 2)
            self._restart(node, killed, "a rank was killed for want of memory")
        elif incident.kind == "lost node":
            self._alive.pop()
            self._training.ranks -= self._ranks

    def _restart(self, node: Node | None, killed: int | None, why: str) -> None:
        """End all ranks, and start those of the hosts that are there from the last checkpoint."""
        for one in self._alive:
            one.stop(self._time_ms, None, _SIGTERM, killed if one is node else None)
        for one in self._alive:
            one.start(self._time_ms, one.number * self._ranks, self._training.ranks)
        said = self._training.go_back()
        self._head.print(self._time_ms, said)
        self._alert("restarted", f"{why}: {said.strip()}", "warning")

    def _alert(self, title: str, text: str, level: str) -> None:
        """What a script's `run.alert()` writes."""
        alert = {"t": self._time_ms, "name": "alert", "level": level, "title": title, "text": text}
        self._head.processes[0].journal.json(frames.EVENT, alert)
