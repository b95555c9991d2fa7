"""The commands that an agent gets when it reports which runs it has."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from starlette.concurrency import run_in_threadpool

from runvitals.model.errors import UnknownRun
from runvitals.server.charts.series import LoggedSelection
from runvitals.server.library.run_library import RunView, TooMuch
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.sweeps.configuration import Objective, SweepConfiguration, stored_configuration
from runvitals.server.sweeps.early_termination import Hyperband
from runvitals.server.sweeps.outcomes import note_ended, trials
from runvitals.server.sweeps.search import next_parameters
from runvitals.server.sweeps.storage.rows import Sweep, SweepAgent, SweepRun

if TYPE_CHECKING:
    from runvitals.server.library.stored.run_library import StoredLibrary

Command = dict[str, Any]
LOST_MS: Final = 300_000
"""An agent that was not heard from for so long is lost: another one gets the run that it was to start."""
MAX_REPORTED: Final = 100
"""Runs that an agent can have at the same time."""
_MAX_TRIES: Final = 3
_MAX_RACES: Final = 50
_COMPARED: Final = 10_000
_EXIT: Final[Command] = {"type": "exit"}


class AgentCommands:
    """Answers the reports of agents.

    An agent reports every few seconds which runs it has. Without any it gets the next run. A report can be
    repeated: as long as the run has not begun, the agent gets the same one.

    Args:
        store: knows the sweeps.
        library: has what the runs logged.
    """

    def __init__(self, store: MetadataStore, library: StoredLibrary) -> None:
        self._store = store
        self._library = library

    async def after(
        self, agent: SweepAgent, sweep: Sweep, running: Collection[str], now_ms: int
    ) -> list[Command]:
        """The commands for an agent that has these runs, by the ids by which it knows them."""
        await run_in_threadpool(self._store.sweeps.agents.heard, agent.id, now_ms)
        if sweep.state == "canceled":
            return [_EXIT]
        if running:
            return await self._stops(sweep, list(running)[:MAX_REPORTED])
        return await run_in_threadpool(self._next, agent, sweep, now_ms)

    def leave(self, sweep: Sweep, now_ms: int) -> list[Command]:
        """The commands for an agent that wants no more runs. What its last one achieved is noted."""
        note_ended(self._store, sweep, stored_configuration(sweep.configuration), now_ms)
        return [_EXIT]

    def _next(self, agent: SweepAgent, sweep: Sweep, now_ms: int) -> list[Command]:
        """The next run for an agent that has none."""
        configuration = stored_configuration(sweep.configuration)
        store = self._store.sweeps
        if sweep.state == "pending":
            sweep = store.sweeps.set_state(sweep.id, "running", now_ms, ("pending",))
        unended = note_ended(self._store, sweep, configuration, now_ms)
        sweep = store.sweeps.get(sweep.id)  # a run may have reached the target
        if sweep.state in ("finished", "canceled"):
            return [_EXIT]
        if sweep.state == "paused":
            return []
        again = self._again(agent, sweep, unended, now_ms)
        if again is not None:
            return [_start(again, configuration)]
        run = self._assign(agent, sweep, configuration, now_ms)
        if run is not None:
            return [_start(run, configuration)]
        unended = store.runs.unended(sweep.id)
        if not unended:
            store.sweeps.finish(sweep.id, now_ms)
        # Until the last runs have begun: if their agents are lost, this one gets them.
        return [] if any(unended_run.state == "assigned" for unended_run in unended) else [_EXIT]

    def _again(
        self, agent: SweepAgent, sweep: Sweep, unended: Collection[SweepRun], now_ms: int
    ) -> SweepRun | None:
        """A run that was assigned before and has not begun: to this agent, or to one that is lost."""
        runs = self._store.sweeps.runs
        own = [run for run in unended if run.state == "assigned" and run.agent_id == agent.id]
        abandoned = runs.abandoned(sweep.id, now_ms - LOST_MS)
        for run in (*own, *([] if abandoned is None else [abandoned])):
            if run.tries < _MAX_TRIES:
                return runs.reassign(run, agent.id)
            runs.give_up(run.id)  # its program ends before the run begins
        return None

    def _assign(
        self, agent: SweepAgent, sweep: Sweep, configuration: SweepConfiguration, now_ms: int
    ) -> SweepRun | None:
        """A new run; None if the search has no more."""
        store, cap = self._store.sweeps, configuration.run_cap
        for _ in range(_MAX_RACES):
            # Each time: another agent may have got the last run. Whoever gets one after this has its place.
            if cap is not None and store.runs.count(sweep.id) >= cap:
                return None
            parameters = next_parameters(
                configuration, sweep.places, sweep.seed, trials(self._store, sweep, configuration)
            )
            if parameters is None:
                return None
            run = store.runs.assign(sweep.id, sweep.places, parameters, agent.id, now_ms)
            if run is not None:
                return run
            sweep = store.sweeps.get(sweep.id)  # another agent was faster
        return None

    async def _stops(self, sweep: Sweep, running: list[str]) -> list[Command]:
        """Commands that stop those of an agent's runs that do worse than others."""
        configuration = stored_configuration(sweep.configuration)
        hyperband, metric = configuration.early_termination, configuration.metric
        if hyperband is None or metric is None:
            return []
        runs = await run_in_threadpool(self._begun, sweep, running)
        return [
            {"type": "stop", "run_id": run.run_name}
            for run in runs
            if run.state == "stopping" or await self._is_worse(run, hyperband, metric)
        ]

    def _begun(self, sweep: Sweep, names: list[str]) -> list[SweepRun]:
        """The runs with these names, with what has arrived of them."""
        runs = self._store.sweeps.runs.named(sweep.id, names)
        if all(run.state != "assigned" for run in runs):
            return runs
        self._store.sweeps.runs.adopt(sweep.id)
        return self._store.sweeps.runs.named(sweep.id, names)

    async def _is_worse(self, run: SweepRun, hyperband: Hyperband, metric: Objective) -> bool:
        if run.run_id is None or run.state != "begun" or len(run.marks) == len(hyperband.brackets):
            return False
        marks = hyperband.marks(await self._costs(run.run_id, metric))
        if len(marks) <= len(run.marks) and not hyperband.strict:
            return False
        return await run_in_threadpool(self._note_marks, run, hyperband, marks)

    def _note_marks(self, run: SweepRun, hyperband: Hyperband, marks: list[float]) -> bool:
        runs = self._store.sweeps.runs
        runs.mark(run.id, marks)
        others = [of_other for number, of_other in runs.marks(run.sweep_id, _COMPARED) if number != run.id]
        if not hyperband.ends(marks, others):
            return False
        runs.stop(run.id)
        return True

    async def _costs(self, run_id: int, metric: Objective) -> list[float]:
        """Return the metric's values as costs, by step; of several processes, the first that logs it."""

        def read(view: RunView) -> list[float]:
            for process in LoggedSelection((metric.name,)).columns(view):
                if metric.name in process.columns:
                    steps, _, values = process.columns[metric.name]
                    ordered = values[np.argsort(steps, kind="stable")].tolist()
                    return [metric.cost(value) for value in ordered if math.isfinite(value)]
            return []

        run = await run_in_threadpool(self._store.runs.place, run_id)
        try:
            if run is None:
                return []
            opened = await self._library.open(run.uid, run_id)
            return await opened.use(read)
        except (UnknownRun, TooMuch):  # deleted a moment ago, or longer than any comparison needs
            return []


def _start(run: SweepRun, configuration: SweepConfiguration) -> Command:
    return {
        "id": str(run.id),
        "type": "run",
        "run_id": run.run_name,
        "program": configuration.program,
        "args": {name: {"value": value} for name, value in (run.parameters or {}).items()},
    }
