"""`Api`: reads the runs of a server as W&B's class of this name does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, overload

from runvitals.errors import CommError
from runvitals.model.artifacts import UnknownArtifact
from runvitals.model.errors import UnknownRun
from runvitals.model.mongo_filter import parse_filters
from runvitals.readers.servers import Client
from runvitals.readers.servers.wandb.api_run import ApiRun
from runvitals.sdk import wandb_names
from runvitals.sdk.artifacts.artifact import Artifact
from runvitals.sdk.start import resolve_settings

_FIELDS = {
    "created_at": "started_ms", "createdAt": "started_ms", "heartbeat_at": "ended_ms", "display_name": "name",
    "displayName": "name", "name": "name", "state": "state", "duration": "duration_ms",
}  # fmt: skip
_PREFIXES = {"summary_metrics.": "summary.", "summaryMetrics.": "summary.", "config.": "config."}


class RunNotFound(CommError, UnknownRun):
    """The server has no such run, or none that the key may read."""


class ArtifactNotFound(CommError, UnknownArtifact):
    """The server has no such artifact, or none that the key may read."""


class Api:
    """Reads the runs of a server.

    Args:
        overrides: `base_url`, `entity` and `project`, as in W&B's class.
        timeout: seconds for each request.
        api_key: the key; default: as `Client`.

    Raises:
        ValueError: no server is set, or an invalid URL.

    Example:
        >>> for run in runvitals.Api().runs("team/digits", filters={"config.lr": {"$gt": 0.1}}):
        ...     print(run.name, run.summary["loss"])
    """

    def __init__(
        self,
        overrides: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        api_key: str | None = None,
    ) -> None:
        given = overrides or {}
        settings = resolve_settings({})
        server = given.get("base_url") or settings["server"]
        if server is None:
            raise ValueError("Api(): no server; set RUNVITALS_SERVER, or overrides={'base_url': …}")
        self.default_entity: str | None = given.get("entity") or settings["entity"]
        self._default_project: str = given.get("project") or settings["project"]
        self._client = Client(server, api_key, 30.0 if timeout is None else timeout)

    def run(self, path: str = "") -> ApiRun:
        """The run with this path: `id`, `project/id`, `entity/project/id`, or any with `runs/` before the id.

        Raises:
            RunNotFound: no such run (a `wandb.errors.CommError` and a LookupError).
            ServerError: the server rejected the request or is unreachable.
        """
        try:
            return ApiRun(self._client.run(path.rstrip("/").rpartition("/")[2]))
        except UnknownRun as error:
            raise RunNotFound(str(error)) from None

    def runs(
        self,
        path: str | None = None,
        filters: Mapping[str, Any] | None = None,
        order: str = "+created_at",
        per_page: int = 50,
        include_sweeps: bool = True,
        lazy: bool = True,
    ) -> ApiRuns:
        """The runs of a project that fulfil a filter.

        Args:
            path: `project` or `entity/project`.
            filters: in the language of MongoDB, as in W&B's class. The server evaluates them.
            order: a field, with + or - before it: `-created_at`, `+summary_metrics.loss`.
            per_page, include_sweeps, lazy: ignored; pages and values are fetched as needed.

        Raises:
            ValueError: an unknown field or operator, or an operand that it cannot have.
        """
        parse_filters(json.dumps(filters or {}))
        entity, _, project = (path or "").rstrip("/").rpartition("/")
        return ApiRuns(
            self._client,
            entity or None,
            project or self._default_project,
            dict(filters or {}),
            order,
        )

    def artifact(self, name: str, type: str | None = None) -> Artifact:
        """Return the version of an artifact with this name.

        The name is `name:alias`, `project/name:alias` or `entity/project/name:alias`.

        Raises:
            ArtifactNotFound: there is none (a `wandb.errors.CommError` and a LookupError).
            ValueError: it has another type.
        """
        entity, project = self.default_entity, self._default_project
        before = [[*([entity] if entity else []), project], [entity] if entity else [], []]
        try:
            artifact = self._client.artifact("/".join([*before[min(name.count("/"), 2)], name]))
        except UnknownArtifact as error:
            raise ArtifactNotFound(str(error)) from None
        if type is not None and artifact.type != type:
            raise ValueError(f"the artifact {name!r} has the type {artifact.type!r}, not {type!r}")
        return artifact

    def close(self) -> None:
        """Close the connection. The next call opens a new one."""
        self._client.close()

    def __getattr__(self, name: str) -> NoReturn:
        raise wandb_names.api_absence_error("Api", name)


class ApiRuns:
    """The runs that `Api.runs` found, fetched when they are iterated over."""

    def __init__(
        self, client: Client, entity: str | None, project: str, filters: Mapping[str, Any], order: str
    ) -> None:
        self._client = client
        self._entity = entity
        self._project = project
        self._filters = filters
        self._order = order
        self._found: list[ApiRun] | None = None

    def __iter__(self) -> Iterator[ApiRun]:
        if self._found is not None:
            yield from self._found
            return
        found = []
        for run in self._fetched():
            found.append(run)
            yield run
        self._found = found

    def _fetched(self) -> Iterator[ApiRun]:
        sort = _sort_key(self._order.lstrip("+-"))
        descending = self._order.startswith("-")
        for run in self._client.runs(
            self._project, sort=sort, descending=descending, mongo_filter=self._filters
        ):
            if self._entity is None or run.entity in (None, self._entity):
                yield ApiRun(run)

    def _all(self) -> list[ApiRun]:
        # Not list(self): that asks for the length first.
        if self._found is None:
            self._found = list(self._fetched())
        return self._found

    def __len__(self) -> int:
        return len(self._all())

    @overload
    def __getitem__(self, index: int) -> ApiRun: ...
    @overload
    def __getitem__(self, index: slice) -> list[ApiRun]: ...
    def __getitem__(self, index: int | slice) -> ApiRun | list[ApiRun]:
        return self._all()[index]


def _sort_key(order: str) -> str:
    """Our name of a field that W&B sorts by."""
    for theirs, ours in _PREFIXES.items():
        if order.startswith(theirs):
            return ours + order.removeprefix(theirs).removesuffix(".value")
    return _FIELDS.get(order, order)
