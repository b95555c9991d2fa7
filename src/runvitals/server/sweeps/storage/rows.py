"""Sweeps, agents and runs of sweeps as the store returns them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from runvitals.store.errors import NotFound

State = Literal["pending", "running", "paused", "finished", "canceled"]
OVER: Final = ("finished", "canceled")
"""The states of a sweep that gets no more runs."""
UNENDED: Final = ("assigned", "begun", "stopping")
"""The states of a run that has not ended."""


class UnknownSweep(NotFound):
    """There is no such sweep."""


class SweepConflict(ValueError):
    """A sweep is in a state in which this cannot be done."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep.

    Args:
        name: what users know it by, unique in its project.
        display_name: what a user called it; None: nobody did.
        source: the configuration as YAML; `configuration`: as JSON.
        places: how many runs the search has chosen parameters for.
        author_id: the user who made it; None: a service account, or there are no accounts.
    """

    id: int
    project_id: int
    name: str
    display_name: str | None
    description: str | None
    source: str
    configuration: str
    state: State
    seed: int
    places: int
    author_id: int | None
    service_account_id: int | None
    created_ms: int
    changed_ms: int


@dataclass(frozen=True, slots=True)
class NewSweep:
    """The values of a sweep to create."""

    project_id: int
    source: str
    configuration: str
    seed: int
    display_name: str | None = None
    description: str | None = None
    author_id: int | None = None
    service_account_id: int | None = None


@dataclass(frozen=True, slots=True)
class SweepAgent:
    """A process that starts runs of a sweep. `heard_ms`: when the server last heard from it."""

    id: int
    sweep_id: int
    host: str
    created_ms: int
    heard_ms: int


@dataclass(frozen=True, slots=True)
class SweepRun:
    """A run of a sweep.

    Args:
        run_name: the id by which the client knows the run.
        run_id: None before it has begun, and after it was deleted for good.
        place: of its parameters in the search; None: it joined with its own.
        agent_id: the agent that is to start it; None: none is.
        tries: how often it was sent to an agent.
        state: assigned to an agent; begun; stopping, because others do better; ended.
        parameters: None: not known before the run has ended.
        value: of the sweep's metric; None: there is none.
        marks: the costs at the brackets of an early termination.
    """

    id: int
    sweep_id: int
    run_name: str
    run_id: int | None
    place: int | None
    agent_id: int | None
    tries: int
    state: str
    parameters: Mapping[str, Any] | None
    value: float | None
    marks: tuple[float, ...]
    created_ms: int
