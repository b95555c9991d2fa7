"""Requests to a W&B server: runs, rows, system metrics, output and files."""

from __future__ import annotations

import netrc
import os
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from runvitals.base.json_codec import loads
from runvitals.readers.importers.json_api import ApiError, JsonApi
from runvitals.readers.importers.shapes import listed, mapping

SERVICE = "https://api.wandb.ai"
_PAGE_RUNS = 50
_PAGE_STEPS = 1000
_PAGE_LINES = 1000
_PAGE_FILES = 100
_MAX_EVENTS = 100_000

_RUN = """
    id name displayName state config summaryMetrics tags notes group jobType commit createdAt heartbeatAt
    historyLineCount
"""
_RUNS = f"""
query Runs($project: String!, $entity: String!, $cursor: String, $count: Int, $order: String) {{
  project(name: $project, entityName: $entity) {{
    runCount
    runs(after: $cursor, first: $count, order: $order) {{
      edges {{ node {{ {_RUN} }} cursor }}
      pageInfo {{ endCursor hasNextPage }}
    }}
  }}
}}"""
_ONE = f"""
query Run($project: String!, $entity: String!, $run: String!) {{
  project(name: $project, entityName: $entity) {{ run(name: $run) {{ {_RUN} }} }}
}}"""
_OF_RUN = """
query {what}($project: String!, $entity: String!, $run: String!{variables}) {{
  project(name: $project, entityName: $entity) {{ run(name: $run) {{ {field} }} }}
}}"""
_HISTORY = _OF_RUN.format(
    what="HistoryPage",
    variables=", $first: Int64!, $end: Int64!, $count: Int!",
    field="history(minStep: $first, maxStep: $end, samples: $count)",
)
_EVENTS = _OF_RUN.format(what="Events", variables=", $count: Int", field="events(samples: $count)")
_LINES = _OF_RUN.format(
    what="LogLines",
    variables=", $cursor: String, $count: Int",
    field="logLines(after: $cursor, first: $count) { edges { node { line level timestamp } cursor } "
    "pageInfo { endCursor hasNextPage } }",
)
_FILES = _OF_RUN.format(
    what="RunFiles",
    variables=", $cursor: String, $count: Int",
    field="files(after: $cursor, first: $count) { edges { node { name directUrl sizeBytes } cursor } "
    "pageInfo { endCursor hasNextPage } }",
)


class WandbServer:
    """A W&B server.

    Args:
        url: its base URL.
        key: the API key, or None.
        sleep: waits so many seconds.
    """

    def __init__(self, url: str, key: str | None, sleep: Callable[[float], None] = time.sleep) -> None:
        headers = {}
        if key is not None:
            headers["Authorization"] = f"Basic {b64encode(f'api:{key}'.encode()).decode()}"
        self._api = JsonApi(url, headers, None, sleep)
        self._sleep = sleep
        self.url = self._api.url
        self.total = 0

    @classmethod
    def of(cls, url: str | None, environ: Mapping[str, str]) -> WandbServer:
        """Return the server of a URL, of the environment, or W&B's service, with the key that is for it.

        Raises:
            ValueError: invalid URL, or the login file cannot be read.
        """
        base = (url or environ.get("WANDB_BASE_URL") or SERVICE).rstrip("/")
        return cls(base, _key(base, environ))

    def runs(self, entity: str, project: str) -> Iterator[dict[str, Any]]:
        """Yield the runs of a project, oldest first.

        Raises:
            ApiError: the server rejected the request, or there is no such project.
        """
        cursor = None
        variables = {"entity": entity, "project": project, "count": _PAGE_RUNS, "order": "+created_at"}
        while True:
            answer = self._project(_RUNS, {**variables, "cursor": cursor})
            total = answer.get("runCount")
            self.total = total if isinstance(total, int) else 0
            nodes, cursor = self._page(answer, "runs")
            for node in nodes:
                yield self._named(node)
            if not cursor:
                return

    def run(self, entity: str, project: str, run: str) -> dict[str, Any]:
        """Return a run, or raise ApiError."""
        return self._named(self._run(_ONE, entity, project, run))

    def history(self, entity: str, project: str, run: str, steps: int) -> Iterator[Mapping[str, Any]]:
        """Yield all rows, in the order of their steps.

        Args:
            steps: the number of rows that the server has, or the step after the last.
        """
        first, span = 0, _PAGE_STEPS
        while first < steps:
            variables = {"first": first, "end": first + span, "count": _PAGE_STEPS}
            lines = listed(self._run(_HISTORY, entity, project, run, variables).get("history"))
            few = len(lines) < _PAGE_STEPS // 4
            if not few and span > _PAGE_STEPS:
                span //= 2  # there may be more rows in these steps, of which the server leaves some out
                continue
            yield from map(_row, lines)
            first += span
            span *= 2 if few else 1

    def events(self, entity: str, project: str, run: str) -> list[Mapping[str, Any]]:
        """Return the samples of the system metrics, as many as the server returns."""
        lines = listed(self._run(_EVENTS, entity, project, run, {"count": _MAX_EVENTS}).get("events"))
        return [_row(line) for line in lines]

    def lines(self, entity: str, project: str, run: str) -> Iterator[dict[str, Any]]:
        """Return the lines of the console output."""
        return self._connection(_LINES, "logLines", _PAGE_LINES, (entity, project, run))

    def files(self, entity: str, project: str, run: str) -> Iterator[dict[str, Any]]:
        """Return the files of a run: name, URL and size."""
        return self._connection(_FILES, "files", _PAGE_FILES, (entity, project, run))

    def content(self, url: str) -> bytes | None:
        """Return the content of a file. The key is only sent to the server itself.

        Raises:
            ApiError, OSError: it cannot be downloaded.
        """
        if url.startswith("/"):
            url = self.url + url
        if url.startswith(f"{self.url}/"):
            return self._api.content(url.removeprefix(self.url))
        parts = urlsplit(url)
        other = JsonApi(f"{parts.scheme}://{parts.netloc}", {}, None, self._sleep)
        try:
            return other.content(f"{parts.path}?{parts.query}" if parts.query else parts.path)
        finally:
            other.close()

    def close(self) -> None:
        """Close the connection."""
        self._api.close()

    def _connection(
        self, query: str, field: str, count: int, path: tuple[str, str, str]
    ) -> Iterator[dict[str, Any]]:
        cursor = None
        while True:
            answer = self._run(query, *path, {"cursor": cursor, "count": count})
            if not answer.get(field):
                return
            nodes, cursor = self._page(answer, field)
            yield from nodes
            if not cursor:
                return

    def _page(self, answer: Mapping[str, Any], field: str) -> tuple[list[Any], str | None]:
        """Return the nodes of a page, and the cursor of the next one; None after the last.

        Raises:
            ApiError: it is no page.
        """
        page = mapping(answer.get(field))
        nodes = [mapping(edge).get("node") for edge in listed(page.get("edges"))]
        if not isinstance(page.get("edges"), list) or not all(isinstance(node, dict) for node in nodes):
            raise ApiError(f"{self.url} answered {field!r} with what is no page", 200)
        about = mapping(page.get("pageInfo"))
        cursor = about.get("endCursor") if about.get("hasNextPage") else None
        return nodes, cursor if isinstance(cursor, str) else None

    def _named(self, node: dict[str, Any]) -> dict[str, Any]:
        """Return a run's fields, or raise ApiError if they have no name."""
        if not isinstance(node.get("name"), str):
            raise ApiError(f"{self.url} answered with a run that has no name", 200)
        return node

    def _run(
        self, query: str, entity: str, project: str, run: str, variables: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        path_variables = {"entity": entity, "project": project, "run": run}
        node = self._project(query, {**path_variables, **(variables or {})}).get("run")
        if not isinstance(node, dict):
            raise ApiError(f"{self.url} has no run {entity}/{project}/{run}", 404)
        return node

    def _project(self, query: str, variables: Mapping[str, Any]) -> dict[str, Any]:
        response = self._api.post("/graphql", {"query": query, "variables": dict(variables)})
        errors = response.get("errors")
        if errors:
            first = next(iter(listed(errors)), errors)
            raise ApiError(f"{self.url}: {mapping(first).get('message') or first}", 200)
        project = mapping(response.get("data")).get("project")
        if not isinstance(project, dict):
            raise ApiError(f"{self.url} has no project {variables['entity']}/{variables['project']}", 404)
        return project


def _row(line: Any) -> Mapping[str, Any]:
    """Return a row, which the server sends as JSON in a text."""
    return mapping(loads(line.encode()) if isinstance(line, str) else line)


def _key(url: str, environ: Mapping[str, str]) -> str | None:
    """Return the key for a server: `WANDB_API_KEY` if that is for it, then the login file of W&B's client."""
    own = (environ.get("WANDB_BASE_URL") or SERVICE).rstrip("/")
    key = environ.get("WANDB_API_KEY")
    if key and own == url:
        return key
    path = environ.get("NETRC") or os.path.join(os.path.expanduser("~"), ".netrc")
    try:
        # Not `authenticators`: an entry `default` is for no server in particular.
        login = netrc.netrc(path).hosts.get(urlsplit(url).hostname or "")
    except FileNotFoundError:
        return None
    except (netrc.NetrcParseError, OSError) as error:
        raise ValueError(f"could not read {path}: {error}") from None
    return login[2] if login else None
