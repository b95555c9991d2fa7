"""The environment variables that the destinations of each run read their credentials from."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping

from runvitals.monitoring.monitor.relay_connection import destination_variables
from runvitals.relay.engine.credentials import environ_for_undelivered


class RunEnvironments:
    """The relay's own environment with, for each run, the variables of its training.

    A training sends the variables of its destinations (`MLFLOW_…` for `mlflow`) when it starts. They replace
    those of the relay, which were inherited from the training that started it.
    """

    def __init__(self) -> None:
        self._environs: dict[str, dict[str, str]] = {}
        self._received: set[str] = set()  # runs whose training has sent its variables

    def receive(self, run_id: str, destinations: Iterable[str], variables: Mapping[str, str]) -> None:
        """Store the variables that a run's training sent. Destinations that are open see them too."""
        environ = self._environs.setdefault(run_id, {})
        inherited = destination_variables(destinations, os.environ)
        environ.clear()
        environ.update({name: text for name, text in os.environ.items() if name not in inherited})
        environ.update(variables)
        self._received.add(run_id)

    def environ(self, run_id: str, destination: str) -> Mapping[str, str]:
        """Return the environment of a run's destinations.

        For a run whose training sent no variables, credentials are removed unless they belong to
        `destination`: it is only known from a file in the run's folder.
        """
        environ = self._environs.get(run_id)
        if environ is None:
            environ = self._environs[run_id] = dict(os.environ)
        if run_id not in self._received:
            for name in environ.keys() - environ_for_undelivered(destination, environ).keys():
                del environ[name]
        return environ

    def run_ids(self) -> Collection[str]:
        """Return the runs whose environment is stored."""
        return list(self._environs)

    def forget(self, run_id: str) -> None:
        """Delete a run's variables, which may be credentials."""
        del self._environs[run_id]
        self._received.discard(run_id)
