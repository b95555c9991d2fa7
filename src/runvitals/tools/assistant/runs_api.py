"""The API that tools of assistants call: that of a server, or over the journals of this machine."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlencode

import anyio.to_thread

from runvitals.base import stored_keys
from runvitals.model.errors import UnknownRun
from runvitals.readers.servers.connection import PREFIX, ApiConnection, Parameters, ServerError, path_with
from runvitals.server.http.application_call import response_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp

TIMEOUT_S = 60.0


class RunsApi(Protocol):
    """The routes below `/api/v1`, with the rights of one requester."""

    async def call(
        self, method: str, path: str, names: Mapping[str, str], body: Any, parameters: Parameters
    ) -> Any:
        """Return the JSON of a response; a ServerError says why a request was refused.

        Args:
            path: with the names of parameters in braces, whose values are `names`.
            parameters: of the query; None is left out, and a list repeats the parameter.
        """


class ServerApi:
    """The routes of a server.

    Args:
        key: whose rights requests have; None without one.
    """

    def __init__(self, url: str, key: str | None) -> None:
        self._url, self._key = url, key

    async def call(
        self, method: str, path: str, names: Mapping[str, str], body: Any, parameters: Parameters
    ) -> Any:
        """See `RunsApi.call`."""
        send = partial(self._send, method, path, names, body, parameters)
        return await anyio.to_thread.run_sync(send, abandon_on_cancel=True)

    def _send(
        self, method: str, path: str, names: Mapping[str, str], body: Any, parameters: Parameters
    ) -> Any:
        with closing(ApiConnection(self._url, self._key, TIMEOUT_S)) as connection:
            try:
                return connection.call(method, path, names, body, parameters)
            except ServerError as error:
                if error.status != HTTPStatus.UNAUTHORIZED:
                    raise
                remedy = stored_keys.remedy(self._url, os.environ)
                raise ServerError(f"{self._url} did not accept the key: {remedy}", error.status) from None


class JournalApi:
    """The routes over a data folder, in this process."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def call(
        self, method: str, path: str, names: Mapping[str, str], body: Any, parameters: Parameters
    ) -> Any:
        """See `RunsApi.call`."""
        query = urlencode([(name, value) for name, value in parameters if value is not None], doseq=True)
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": PREFIX + path.format_map(names),
            "raw_path": (PREFIX + path_with(path, names)).encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(b"content-type", b"application/json")],
        }
        sent = await response_of(self._app, scope, b"" if body is None else json.dumps(body).encode())
        content = json.loads(sent.content) if sent.content else None
        if sent.status >= HTTPStatus.BAD_REQUEST:
            raise ServerError(str((content or {}).get("error")), sent.status)
        return content


class CalledRun:
    """A run that an assistant named, as it is now.

    Args:
        row: what the API says about it.
    """

    def __init__(self, api: RunsApi, row: Mapping[str, Any]) -> None:
        self._api, self.row = api, row
        self.id: str = row["id"]
        self.entity: str | None = row.get("entity")
        self.reference = "/".join(filter(None, (self.entity, self.id)))

    async def get(self, path: str = "", **parameters: Any) -> Any:
        """Return the response to a GET about the run."""
        return await self._call("GET", path, None, parameters)

    async def send(self, method: str, path: str, body: Any = None) -> Any:
        """Return the response to a change of the run."""
        return await self._call(method, path, body, {})

    async def _call(self, method: str, path: str, body: Any, parameters: Mapping[str, Any]) -> Any:
        query = [("entity", self.entity), *parameters.items()]
        return await self._api.call(method, "/runs/{run}" + path, {"run": self.id}, body, query)


async def named_run(api: RunsApi, reference: str) -> CalledRun:
    """Return the run that a text names: an id, `ENTITY/ID`, a name that no other run has, or `latest`.

    Raises:
        UnknownRun: no run is called so, or several are.
        ServerError: the request was refused.
    """
    entity, slash, run_id = reference.partition("/")
    names = {"run": run_id if slash else reference}
    if reference != "latest" and names["run"]:
        try:
            row = await api.call("GET", "/runs/{run}", names, None, [("entity", entity if slash else None)])
        except ServerError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
        else:
            return CalledRun(api, row)
    name_filter = [] if reference == "latest" else [("filter", "name:" + json.dumps(reference))]
    page = await api.call(
        "GET", "/runs", {}, None, [*name_filter, ("limit", 1 if reference == "latest" else 100)]
    )
    rows = [row for row in page["runs"] if reference in ("latest", row["name"])]
    if len(rows) != 1:
        problem = f"{len(rows)} runs have" if rows else "no run has"
        raise UnknownRun(f"{problem} the id or name {reference!r}; list_runs lists them with their ids")
    return await named_run(api, CalledRun(api, rows[0]).reference)
