"""`Api`: reads the runs of a server as W&B's class of this name does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn, overload

from runvitals.errors import CommError, UnsupportedArgument
from runvitals.model.artifacts import UnknownArtifact
from runvitals.model.errors import UnknownRun
from runvitals.model.mongo_filter import parse_filters
from runvitals.model.mongo_order import parse_order
from runvitals.readers.servers import Client
from runvitals.readers.servers.wandb.api_run import ApiRun
from runvitals.sdk import wandb_names
from runvitals.sdk.artifacts.artifact import Artifact
from runvitals.sdk.start import resolve_settings


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
        options = overrides or {}
        settings = resolve_settings({})
        server = options.get("base_url") or settings["server"]
        if server is None:
            raise ValueError("Api(): no server; set RUNVITALS_SERVER, or overrides={'base_url': …}")
        self.default_entity: str | None = options.get("entity") or settings["entity"]
        self._default_project: str = options.get("project") or settings["project"]
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
        """Return the runs of a project that fulfil a filter.

        Args:
            path: `project` or `entity/project`.
            filters: in the language of MongoDB, as in W&B's class. The server evaluates them.
            order: up to four fields, each with + or - before it: `-created_at`, `state,-config.lr`.
            per_page, include_sweeps, lazy: ignored; pages and values are fetched as needed.

        Raises:
            ValueError: an unknown field or operator, or an operand that it cannot have.
        """
        parse_filters(json.dumps(filters or {}))
        parse_order(order)
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
        try:
            artifact = self._client.artifact(self._full_name(name))
        except UnknownArtifact as error:
            raise ArtifactNotFound(str(error)) from None
        return _checked_type(artifact, name, type)

    def artifacts(
        self,
        type_name: str,
        name: str,
        order: str | None = None,
        per_page: int = 50,
        tags: Sequence[str] | None = None,
        start: str | None = None,
    ) -> Iterator[Artifact]:
        """Yield the versions of an artifact, the newest first.

        Args:
            type_name: the type that it must have.
            name: `name`, `project/name` or `entity/project/name`.
            order: only of the newest first, such as `-created_at`.
            per_page: ignored: all pages are read.
            tags, start: not supported.

        Raises:
            ArtifactNotFound: there is none (a `wandb.errors.CommError` and a LookupError).
            ValueError: it has another type.
            UnsupportedArgument: another order, `tags` or `start`, which would be ignored.
        """
        if tags:
            raise UnsupportedArgument("artifacts(): tags is not supported; instead: the project's page")
        if start is not None or (order is not None and not order.startswith("-")):
            raise UnsupportedArgument("artifacts(): all versions come, the newest first; instead: sorted(…)")
        try:
            for artifact in self._client.artifact_versions(self._full_name(name)):
                yield _checked_type(artifact, name, type_name)
        except UnknownArtifact as error:
            raise ArtifactNotFound(str(error)) from None

    def artifact_versions(self, type_name: str, name: str, per_page: int = 50) -> Iterator[Artifact]:
        """Yield the versions of an artifact; an old name of `artifacts`."""
        return self.artifacts(type_name, name)

    def artifact_exists(self, name: str, type: str | None = None) -> bool:
        """Return whether there is a version of an artifact with this name, and of this type."""
        try:
            self.artifact(name, type)
        except (ArtifactNotFound, ValueError):
            return False
        return True

    def _full_name(self, name: str) -> str:
        entity, project = self.default_entity, self._default_project
        before = [[*([entity] if entity else []), project], [entity] if entity else [], []]
        return "/".join([*before[min(name.count("/"), 2)], name])

    def close(self) -> None:
        """Close the connection. The next call opens a new one."""
        self._client.close()

    def __getattr__(self, name: str) -> NoReturn:
        raise wandb_names.api_absence_error("Api", name)


def _checked_type(artifact: Artifact, name: str, type: str | None) -> Artifact:
    if type is not None and artifact.type != type:
        raise ValueError(f"the artifact {name!r} has the type {artifact.type!r}, not {type!r}")
    return artifact


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
        self._runs: list[ApiRun] | None = None

    def __iter__(self) -> Iterator[ApiRun]:
        if self._runs is not None:
            yield from self._runs
            return
        runs = []
        for run in self._fetch():
            runs.append(run)
            yield run
        self._runs = runs

    def _fetch(self) -> Iterator[ApiRun]:
        sort, filters = parse_order(self._order), self._filters
        for run in self._client.runs(
            self._project, sort=sort.text, descending=sort.descending, mongo_filter=filters
        ):
            if self._entity is None or run.entity in (None, self._entity):
                yield ApiRun(run)

    def _all(self) -> list[ApiRun]:
        # Not list(self): that asks for the length first.
        if self._runs is None:
            self._runs = list(self._fetch())
        return self._runs

    def __len__(self) -> int:
        return len(self._all())

    @overload
    def __getitem__(self, index: int) -> ApiRun: ...
    @overload
    def __getitem__(self, index: slice) -> list[ApiRun]: ...
    def __getitem__(self, index: int | slice) -> ApiRun | list[ApiRun]:
        return self._all()[index]
