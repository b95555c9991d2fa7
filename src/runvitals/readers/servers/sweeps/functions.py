"""`runvitals.sweep` and `runvitals.monitoring`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runvitals.monitoring.settings.messages import notify
from runvitals.readers.servers.sweeps import responses
from runvitals.readers.servers.sweeps.agent import AgentLoop
from runvitals.readers.servers.sweeps.server_sweeps import ServerSweeps, SweepAddress
from runvitals.readers.servers.sweeps.training import FunctionTraining, ProgramTraining
from runvitals.sdk.config_file import read_mapping
from runvitals.sdk.start import resolve_settings

Configuration = Mapping[str, Any] | str | os.PathLike[str]
_EXPECTED = "the configuration of a sweep, with method and parameters"
_addresses: dict[str, SweepAddress] = {}
"""The sweeps that this process made, by their ids: `agent` finds their projects."""


def sweep(
    sweep: Configuration,
    entity: str | None = None,
    project: str | None = None,
    prior_runs: Sequence[str] | None = None,
    *,
    name: str | None = None,
) -> str:
    """Make a sweep on the server of the settings: a search for the best parameters over many runs.

    Args:
        sweep: the configuration, or the path of a YAML or JSON file with it. Keys as W&B has them: `method`,
            `metric`, `parameters`, `early_terminate`, `run_cap` …
        entity, project: where the runs belong; default: as in the configuration, else as in the settings.
        prior_runs: the ids of runs of the project that join the sweep: the search learns from their
            configuration and summary.
        name: what to call it.

    Returns:
        The id of the sweep, for `agent`.

    Raises:
        ValueError: no server is set, or the file cannot be read.
        ServerError: the server rejected the configuration or is unreachable.

    Example:
        >>> sweep = runvitals.sweep(
        ...     {"method": "random", "parameters": {"lr": {"min": 0.001, "max": 0.1}}}, project="digits"
        ... )
        >>> runvitals.agent(sweep, train, project="digits", count=20)
    """
    configuration = sweep if isinstance(sweep, Mapping) else read_mapping(sweep, _EXPECTED)
    settings = resolve_settings({})
    project_path = (
        entity or configuration.get("entity") or settings["entity"],
        project or configuration.get("project") or settings["project"],
    )
    sweeps = ServerSweeps.of(_server(settings))
    try:
        created = sweeps.create(*project_path, configuration, name, prior_runs or ())
    finally:
        sweeps.close()
    address = SweepAddress(*project_path, str(created["id"]))
    _addresses[address.sweep] = address
    notify(f"made sweep {created['id']}: {page_url(sweeps.url, address)}")
    notify(f"start its runs with `runvitals agent {address}`")
    return address.sweep


def agent(
    sweep_id: str,
    function: Callable[[], object] | None = None,
    entity: str | None = None,
    project: str | None = None,
    count: int | None = None,
    forward_signals: bool = False,
    term_timeout: float | None = None,
    max_consecutive_failed_runs: int | None = None,
) -> None:
    """Start the runs of a sweep, one after the other, until it is over.

    Args:
        sweep_id: `id`, `project/id` or `entity/project/id`.
        function: called for each run; it calls `init()` and finds the parameters in `run.config`. Without
            one, the `program` of the configuration is started in a process of its own.
        entity, project: of the sweep, where `sweep_id` does not say; default: those of a sweep that this
            process made, else as in the settings.
        count: how many runs at most.
        forward_signals, term_timeout, max_consecutive_failed_runs: ignored; W&B's function has them.

    Raises:
        LookupError: there is no such sweep.
        SweepFailed: the first three runs have failed.
        ValueError: no server is set, or the configuration names no program.
        ServerError: the server rejected a request or is unreachable for ten minutes.
    """
    if function is not None and not callable(function):
        raise TypeError(f"agent(): expected a function without arguments, not {function!r}")
    settings = resolve_settings({})
    own_address = _addresses.get(sweep_id)
    address = SweepAddress.parsed(
        sweep_id,
        entity or (settings["entity"] if own_address is None else own_address.entity),
        project or (settings["project"] if own_address is None else own_address.project),
    )
    sweeps = ServerSweeps.of(_server(settings))
    try:
        configuration = responses.configuration(sweeps.read(address))
        training = ProgramTraining(configuration) if function is None else FunctionTraining(function)
        AgentLoop(sweeps, address, training, settings["dir"]).run(count)
    finally:
        sweeps.close()


def control(sweep_id: str, order: str, entity: str | None, project: str | None) -> Mapping[str, Any]:
    """Pause, resume, stop or cancel a sweep; returns what the API says of it."""
    settings = resolve_settings({})
    address = SweepAddress.parsed(sweep_id, entity or settings["entity"], project or settings["project"])
    sweeps = ServerSweeps.of(_server(settings))
    try:
        return sweeps.control(address, order)
    finally:
        sweeps.close()


def page_url(server: str, address: SweepAddress) -> str:
    """Return the address of a sweep's page."""
    if address.entity is None:
        return f"{server}/projects/{address.project}?sweeps=1&sweep={address.sweep}"
    return f"{server}/{address.entity}/{address.project}/sweeps?sweep={address.sweep}"


def _server(settings: Mapping[str, Any]) -> str:
    """Return the address of the server to which runs are delivered.

    Raises:
        ValueError: there is none to which runs are delivered.
    """
    if settings["server"] is None:
        raise ValueError("sweeps need a server: set RUNVITALS_SERVER, or `runvitals login URL`")
    if settings["mode"] != "online":
        raise ValueError(f"sweeps need the mode online, not {settings['mode']}")
    return str(settings["server"])
