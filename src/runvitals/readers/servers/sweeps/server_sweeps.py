"""Sweeps on a server."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from runvitals.base import stored_keys
from runvitals.readers.servers.connection import ApiConnection, ServerError
from runvitals.readers.servers.sweeps import responses
from runvitals.readers.servers.sweeps.responses import Command

_TIMEOUT_S: Final = 30.0


class SweepAddress(NamedTuple):
    """The parts of `[[entity/]project/]sweep`. `entity` None: on a server without accounts, or the user's."""

    entity: str | None
    project: str
    sweep: str

    @classmethod
    def parsed(cls, text: str, entity: str | None, project: str) -> SweepAddress:
        """Read an address as users write it.

        Args:
            entity, project: where the sweep is if the text does not say.

        Raises:
            ValueError: it names no sweep.

        Example:
            >>> SweepAddress.parsed("digits/k3v9x2mq", None, "default")
            SweepAddress(entity=None, project='digits', sweep='k3v9x2mq')
        """
        *before, sweep = text.split("/")
        if len(before) > 2 or not sweep or "" in before:
            raise ValueError(f"invalid sweep {text[:200]!r}; expected [[entity/]project/]id")
        of_project = before[-1] if before else project
        return cls(before[0] if len(before) == 2 else entity, of_project, sweep)

    def __str__(self) -> str:
        return "/".join([*([self.entity] if self.entity else []), self.project, self.sweep])


class ServerSweeps:
    """The sweeps of a server. Not thread-safe.

    Example:
        >>> sweeps = ServerSweeps.of("https://runs.example.org")
        >>> sweeps.read(SweepAddress("vision", "digits", "k3v9x2mq"))["state"]
        'running'
    """

    def __init__(self, connection: ApiConnection) -> None:
        self._connection = connection

    @classmethod
    def of(cls, url: str) -> ServerSweeps:
        """Return the sweeps of a server, with the token for it; raise ValueError for an invalid URL."""
        return cls(ApiConnection(url, stored_keys.token(url, os.environ), _TIMEOUT_S))

    @property
    def url(self) -> str:
        """The address of the server."""
        return self._connection.url

    def create(
        self,
        entity: str | None,
        project: str,
        configuration: Mapping[str, Any],
        name: str | None,
        prior_runs: Sequence[str] = (),
    ) -> Mapping[str, Any]:
        """Make a sweep, and its project if it is new; returns what the API says of it.

        Args:
            prior_runs: the ids of runs of the project that join it.

        Raises:
            ServerError: the server rejected the request or is unreachable.
        """
        path = f"{_project_path(entity, project)}/sweeps"
        body: dict[str, Any] = {"configuration": dict(configuration), "name": name}
        if prior_runs:
            body["prior_runs"] = list(prior_runs)
        try:
            response = self._connection.send("POST", path, body)
        except ServerError as error:
            if error.status != 404 or entity is None:
                raise
            self._connection.send("POST", f"/entities/{quote(entity, safe='')}/projects", {"name": project})
            response = self._connection.send("POST", path, body)
        return responses.check_id(response)

    def read(self, address: SweepAddress) -> Mapping[str, Any]:
        """Read a sweep as the API returns it.

        Raises:
            LookupError: there is none.
            ServerError: the server rejected the request, is unreachable or sent something else.
        """
        try:
            return responses.check_id(self._connection.get(_path(address)))
        except ServerError as error:
            if error.status == 404:
                raise LookupError(str(error)) from None
            raise

    def control(self, address: SweepAddress, order: str) -> Mapping[str, Any]:
        """Pause, resume, stop or cancel a sweep; returns what the API says of it."""
        return responses.check_id(self._connection.send("POST", f"{_path(address)}/{order}", {}))

    def add_agent(self, address: SweepAddress, host: str) -> str:
        """Register an agent; returns its id."""
        response = self._connection.send("POST", f"{_path(address)}/agents", {"host": host})
        return str(responses.check_id(response)["id"])

    def report(self, address: SweepAddress, agent: str, running: Sequence[str]) -> list[Command]:
        """Tell the server which runs an agent has; returns what the agent is to do."""
        path = f"{_path(address)}/agents/{agent}/report"
        return responses.commands(self._connection.send("POST", path, {"running": list(running)}))

    def leave(self, address: SweepAddress, agent: str) -> None:
        """Tell the server that an agent wants no more runs."""
        path = f"{_path(address)}/agents/{agent}/report"
        self._connection.send("POST", path, {"running": [], "ends": True})

    def run_state(self, entity: str | None, run_id: str) -> str | None:
        """Return the state of a run; None: the server does not have it."""
        try:
            row = self._connection.get(f"/runs/{quote(run_id, safe='')}", [("entity", entity)])
        except ServerError as error:
            if error.status == 404:
                return None
            raise
        return responses.state(row)

    def close(self) -> None:
        """Close the connection to the server."""
        self._connection.close()


def _project_path(entity: str | None, project: str) -> str:
    before = "" if entity is None else f"/entities/{quote(entity, safe='')}"
    return f"{before}/projects/{quote(project, safe='')}"


def _path(address: SweepAddress) -> str:
    return f"{_project_path(address.entity, address.project)}/sweeps/{quote(address.sweep, safe='')}"
