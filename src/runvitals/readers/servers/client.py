"""The client of a server's API."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal

from runvitals.base import stored_keys
from runvitals.model.artifacts import ArtifactAddress
from runvitals.readers.servers import lost_hours, registries, responses
from runvitals.readers.servers.artifacts import ServerArtifacts
from runvitals.readers.servers.connection import ApiConnection
from runvitals.readers.servers.lost_hours import LostHours, PlaceLoss, RunLoss
from runvitals.readers.servers.registries import ServerRegistry
from runvitals.readers.servers.remote_run import RemoteRun
from runvitals.readers.servers.responses import FleetSeries, Latest
from runvitals.sdk.artifacts.artifact import Artifact

PAGE_SIZE = 100
Texts = str | Sequence[str]


class Client:
    """A client of a server: a shared one, or that of `runvitals ui`. Not thread-safe.

    Args:
        url: `http://host[:port][/path]` or https.
        token: access token. Default: `RUNVITALS_TOKEN` if it is for this server, then the token that
            `runvitals login` stored for this URL, then none.
        timeout_s: for connecting, and for each read.

    Raises:
        ValueError: invalid URL, or the stored tokens cannot be read.

    Example:
        >>> client = runvitals.Client("https://runs.example.org")
        >>> for run in client.runs(project="digits", where="config.lr > 0.1", sort="summary.loss"):
        ...     print(run.id, run.summary)
    """

    def __init__(self, url: str, token: str | None = None, timeout_s: float = 30.0) -> None:
        api_key = token if token is not None else stored_keys.token(url, os.environ)
        self._connection = ApiConnection(url, api_key, timeout_s)

    def runs(
        self,
        project: str | None = None,
        state: Texts = (),
        tag: Texts = (),
        text: str | None = None,
        where: Texts = (),
        device: str | None = None,
        sort: str = "started_ms",
        descending: bool = True,
        filter: str = "",
        mongo_filter: Mapping[str, Any] | None = None,
    ) -> Iterator[RemoteRun]:
        """Iterate over runs, by default newest first.

        Fetches pages as needed; runs that start meanwhile do not shift the pages.

        Args:
            project: only runs of this project.
            state: only runs in one of these states.
            tag: only runs with all of these tags.
            text: only runs with all of these words in id, name, group, job type, tags, notes or config.
            where: filter expressions that must hold: `"config.lr > 0.1"`.
            device: only runs that used this device: a UUID, or `host/PCI address`.
            sort: a column (`started_ms`, `duration_ms`, `name`, `state` …) or a field (`summary.loss`). Runs
                without a value come last. Several are separated by commas: `"-summary.loss,name"`.
            descending: sort order of a single name without `-`.
            filter: terms that all hold, as the page has them: `"state:failed gpu.util<20 -tag:debug"`.
            mongo_filter: what also holds, as `Api.runs` has it: `{"config.lr": {"$gt": 0.1}}`.

        Raises:
            ServerError: the server rejected the request or is unreachable.
        """
        filters = _filter(project, state, tag, text, where)
        filters += [
            ("filter", filter or None),
            ("mongo_filter", json.dumps(mongo_filter) if mongo_filter else None),
            ("device", device),
            ("sort", sort),
            ("descending", str(descending).lower()),
            ("limit", PAGE_SIZE),
        ]
        after = None
        while True:
            page = self._connection.get("/runs", [*filters, ("after", after)])
            for row in page["runs"]:
                yield RemoteRun(self._connection, row)
            after = page["next"]
            if after is None:
                return

    def run(self, run_id: str) -> RemoteRun:
        """Return the run with this id.

        Raises:
            UnknownRun: no such run (a LookupError).
            ServerError: the server rejected the request or is unreachable.

        Example:
            >>> client.run("k3j9x2ab").metrics("cpu", max_points=500)["cpu"].values
            array([ 3.1, 97.5, 98.2])
        """
        row = self._connection.get_of_run(run_id)
        return RemoteRun(self._connection, row, responses.run(row))

    def artifact(self, name: str) -> Artifact:
        """Return a version of an artifact, by `[entity/]project/name[:alias]`.

        The alias may be a version: `v3`.

        Raises:
            UnknownArtifact: there is none (a LookupError).
            ValueError: an invalid name, or one without a project.
            ServerError: the server rejected the request or is unreachable.

        Example:
            >>> client.artifact("digits/mnist:best").download()
            'artifacts/mnist:v3'
        """
        return Artifact.from_source(ServerArtifacts(self._connection).find(ArtifactAddress.parsed(name)))

    def artifact_versions(self, name: str) -> Iterator[Artifact]:
        """Yield the versions of an artifact, the newest first.

        Args:
            name: `[entity/]project/name`.

        Raises:
            UnknownArtifact: there is none (a LookupError).
            ValueError: an invalid name, or one without a project.
            ServerError: the server rejected the request or is unreachable.

        Example:
            >>> [artifact.name for artifact in client.artifact_versions("digits/mnist")]
            ['mnist:v1', 'mnist:v0']
        """
        artifacts = ServerArtifacts(self._connection)
        return map(Artifact.from_source, artifacts.sources(ArtifactAddress.parsed(name)))

    def set_artifact_ttl(self, name: str, ttl: timedelta | None) -> int:
        """Let versions of an artifact be deleted some time after they were logged; None: they are kept.

        Linked versions stay, and those that have a time to live of their own.

        Args:
            name: `[entity/]project/name`.

        Returns:
            How many of the versions that are there are deleted because of it, now or later.

        Raises:
            ValueError: an invalid name, or one without a project.
            ServerError: the server rejected the request or is unreachable.

        Example:
            >>> client.set_artifact_ttl("digits/checkpoints", timedelta(days=30))
            12
        """
        seconds = None if ttl is None else round(ttl.total_seconds())
        artifacts = ServerArtifacts(self._connection)
        return artifacts.set_time_to_live(ArtifactAddress.parsed(name), seconds)

    def registry(self, name: str) -> ServerRegistry:
        """Return the registry `team/name`; nothing is read yet.

        Raises:
            ValueError: an invalid name.

        Example:
            >>> client.registry("vision/model").download("classifier:production")
        """
        return registries.registry_of(self._connection, name)

    def registries(self) -> Iterator[dict[str, Any]]:
        """Iterate over the registries that you may read.

        Raises:
            ServerError: the server rejected the request or is unreachable.
        """
        return registries.registry_names(self._connection)

    def latest(
        self,
        *patterns: str,
        project: str | None = None,
        tag: Texts = (),
        text: str | None = None,
        where: Texts = (),
    ) -> list[Latest]:
        """Return the newest values of all running runs, by host. Filters as in `runs`.

        Args:
            patterns: keys or globs; without any, all keys.

        Raises:
            ServerError: the server rejected the request or is unreachable.

        Example:
            >>> [(latest.host, latest.values["cpu"]) for latest in client.latest("cpu")]
            [('node1', 97.5), ('node2', 3.1)]
        """
        filters = _filter(project, (), tag, text, where)
        return responses.latest(self._connection.get("/latest", [("keys", patterns), *filters]))

    def aggregate(
        self,
        metric: str,
        *,
        t0: int | None = None,
        t1: int | None = None,
        bucket_ms: int | None = None,
        group_by: Literal["project", "host", "state", "run"] | None = None,
        project: str | None = None,
        state: Texts = (),
        tag: Texts = (),
        text: str | None = None,
        where: Texts = (),
    ) -> list[FleetSeries]:
        """Count, min, max and mean of one metric over many runs. Filters as in `runs`.

        Args:
            metric: a key, or a glob over keys to aggregate: `"gpu.*.gpu"`. Rates are not supported.
            t0, t1: ms UTC, inclusive; default: the last hour.
            bucket_ms: bucket width; default: one bucket.
            group_by: default: aggregate all runs.

        Raises:
            ServerError: the server rejected the request or is unreachable.

        Example:
            >>> for series in client.aggregate("gpu.*.gpu", group_by="project"):
            ...     print(series.group, series.mean)
        """
        parameters: list[tuple[str, Any]] = [("metric", metric), ("t0", t0), ("t1", t1)]
        parameters += [("bucket", bucket_ms), ("group_by", group_by)]
        filters = _filter(project, state, tag, text, where)
        return responses.fleet(self._connection.get("/aggregate", [*parameters, *filters]))

    def lost_hours(
        self,
        project: str | None = None,
        entity: str | None = None,
        *,
        since_ms: int | None = None,
        until_ms: int | None = None,
        price_per_device_hour: float | None = None,
        filter: str = "",
        organisation: bool = False,
    ) -> LostHours:
        """Return the device-hours that runs lost, by cause, as a shared server has judged them.

        Args:
            project: only runs of this project.
            entity: only runs of this team or user.
            since_ms, until_ms: the period, ms UTC; default: the last 7 days.
            price_per_device_hour: to tell them in money, instead of the server's prices.
            filter: only runs that match these terms, as the page has them.
            organisation: also runs that you may not read, for those who may see the usage of the
                organisation; without `project` and `filter`.

        Raises:
            ServerError: the server rejected the request or is unreachable.

        Example:
            >>> [(cause.id, cause.device_hours) for cause in client.lost_hours("digits").causes]
            [('input_bound_cpu', 51.2), ('idle', 8.0)]
        """
        period = _period(project, entity, since_ms, until_ms, price_per_device_hour, filter)
        return lost_hours.lost_hours(self._connection, period, organisation)

    def run_losses(
        self,
        project: str | None = None,
        entity: str | None = None,
        *,
        cause: str | None = None,
        since_ms: int | None = None,
        until_ms: int | None = None,
        price_per_device_hour: float | None = None,
        filter: str = "",
    ) -> Iterator[RunLoss]:
        """Iterate over the runs behind `lost_hours`, those that lost most first; pages as needed.

        Args:
            cause: only what was lost to this finding, such as `idle`. The others are as in `lost_hours`.

        Raises:
            ServerError: the server rejected the request or is unreachable.
        """
        period = _period(project, entity, since_ms, until_ms, price_per_device_hour, filter)
        return lost_hours.run_losses(self._connection, [*period, ("cause", cause)], PAGE_SIZE)

    def place_losses(
        self,
        by: Literal["team", "project"] = "team",
        entity: str | None = None,
        *,
        cause: str | None = None,
        since_ms: int | None = None,
        until_ms: int | None = None,
        price_per_device_hour: float | None = None,
        organisation: bool = False,
    ) -> Iterator[PlaceLoss]:
        """Iterate over the teams or projects behind `lost_hours`, the most first; pages as needed.

        Args:
            by: `team` also for users. The others are as in `lost_hours` and `run_losses`.

        Raises:
            ServerError: the server rejected the request or is unreachable.
        """
        period = _period(None, entity, since_ms, until_ms, price_per_device_hour, "")
        parameters = [*period, ("cause", cause), ("by", by)]
        return lost_hours.place_losses(self._connection, parameters, PAGE_SIZE, organisation)

    def close(self) -> None:
        """Close the connection. The next call opens a new one."""
        self._connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<runvitals client of {self._connection.url}>"


def _period(
    project: str | None,
    entity: str | None,
    since_ms: int | None,
    until_ms: int | None,
    price: float | None,
    filter: str,
) -> list[tuple[str, Any]]:
    times = [("since", since_ms), ("until", until_ms), ("price", price)]
    return [("project", project), ("entity", entity), ("filter", filter or None), *times]


def _filter(
    project: str | None, state: Texts, tag: Texts, text: str | None, where: Texts
) -> list[tuple[str, Any]]:
    return [("project", project), ("state", state), ("tag", tag), ("text", text), ("where", where)]
