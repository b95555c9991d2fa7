"""The runs of a server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from runvitals.base import stored_keys
from runvitals.model.errors import UnknownRun
from runvitals.model.run import Run
from runvitals.readers.servers import responses
from runvitals.readers.servers.connection import ApiConnection
from runvitals.terminal.leet.shared_use import SharedUse
from runvitals.terminal.leet.sources.credentials import with_remedy

if TYPE_CHECKING:
    from runvitals.terminal.leet.sources.run_source import RunSource

TIMEOUT_S = 15.0
_RUNS = 300


class ServerCatalogue:
    """The runs of a server that its token may read: the newest of those that match.

    Args:
        url: the server's URL.
        environ: environment variables, for tokens, as for all commands.
        project: only of this project.

    Raises:
        ValueError: an invalid URL, or the login file could not be read.
    """

    filters_itself = True

    def __init__(self, url: str, environ: Mapping[str, str], project: str | None = None) -> None:
        self._url, self._token, self._project = url, stored_keys.token(url, environ), project
        self._remedy = stored_keys.remedy(url, environ)
        self._connection = ApiConnection(url, self._token, TIMEOUT_S)
        self._use = SharedUse(self._connection.close)
        self.title = self._connection.url + (f" · {project}" if project else "")

    def runs(self, now_ms: int, filter_text: str) -> tuple[list[Run], int]:
        """Return the newest runs that match the filter, and the number of all that match."""
        parameters = [("filter", filter_text or None), ("project", self._project), ("limit", _RUNS)]
        with self._use(), with_remedy(self._remedy):
            page = self._connection.get("/runs", parameters)
        return [responses.listed_run(row) for row in page["runs"]], int(page["total"])

    def find(self, id_or_name: str) -> str:
        """Return the id of the run with an id, or with a name that no other has.

        Raises:
            UnknownRun: no run matches, or several do.
            ServerError: the server rejected the request or is unreachable.
        """
        try:
            return str(self._connection.get_of_run(id_or_name)["id"])
        except UnknownRun:
            runs, _ = self.runs(0, "name:" + json.dumps(id_or_name))
        ids = [run.id for run in runs if run.name == id_or_name]
        if len(ids) != 1:
            problem = f"{len(ids)} runs of" if ids else "no run"
            raise UnknownRun(f"{problem} {id_or_name!r} on {self._connection.url}, and none on this machine")
        return ids[0]

    def open(self, run_id: str) -> RunSource:
        """Return a run of this server.

        NumPy, which its series need, is loaded here, after the screen has been drawn for the first time.
        """
        from runvitals.terminal.leet.sources.server import ServerSource

        return ServerSource(ApiConnection(self._url, self._token, TIMEOUT_S), run_id, self._remedy)

    def close(self) -> None:
        """Close the connection after the last request."""
        self._use.close()
