"""The part of W&B's HTTP API that runs need.

A GraphQL mutation that creates the run, and the stream of the lines of its files. Both are safe to repeat:
lines are written at their line numbers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from runvitals.base.http_client import HttpClient, ServerResponse
from runvitals.relay.destination import Rejected, Retry, Unauthorized
from runvitals.relay.destinations.wandb.account import authorization
from runvitals.version import __version__

_UNAUTHORIZED = frozenset({401, 403})

# W&B's own client has called it, with more fields, since 2019.
_UPSERT = """
mutation UpsertBucket($name: String, $project: String, $entity: String, $displayName: String, $notes: String,
    $groupName: String, $jobType: String, $config: JSONString, $host: String, $tags: [String!]) {
  upsertBucket(input: {name: $name, modelName: $project, entityName: $entity, displayName: $displayName,
      notes: $notes, groupName: $groupName, jobType: $jobType, config: $config, host: $host, tags: $tags}) {
    bucket { id name project { name entity { name } } }
    inserted
  }
}
"""


class WandbApi:
    """A W&B server.

    Args:
        base_url: `https://api.wandb.ai`, or the URL of a self-hosted server.
        environ: the environment the API key is read from, at every request.

    Raises:
        ValueError: invalid URL.
    """

    def __init__(self, base_url: str, environ: Mapping[str, str]) -> None:
        self._http = HttpClient(base_url)
        self._environ = environ

    def upsert(self, variables: Mapping[str, Any]) -> tuple[str, str]:
        """Create or update a run; returns its (entity, project).

        Args:
            variables: name (the run's id), project, entity, displayName, notes, groupName, jobType, config
                (JSON text), host, tags; None and missing ones are left unchanged.

        Raises:
            Retry: a temporary failure.
            Rejected: a permanent failure.
        """
        request = {"query": _UPSERT, "variables": dict(variables), "operationName": "UpsertBucket"}
        response = _object(self._post("/graphql", request, "the run"))
        if response.get("errors"):
            errors = "; ".join(str(error.get("message", error)) for error in response["errors"])
            raise Rejected(f"W&B rejected the run: {errors}")
        try:
            project = response["data"]["upsertBucket"]["bucket"]["project"]
            return str(project["entity"]["name"]), str(project["name"])
        except (KeyError, TypeError):
            raise Rejected(f"unexpected response of W&B: {str(response)[:200]}") from None

    def stream(self, entity: str, project: str, run: str, body: Mapping[str, Any], shared: str = "") -> bool:
        """Send lines of a run's files; True if a user requested there that the run be stopped.

        Args:
            body: files, complete, exitcode. Empty: a heartbeat.
            shared: our client id if several machines write to the run; "": only this one does.

        Raises:
            Retry: a temporary failure.
            Rejected: a permanent failure.
        """
        path = "/files/" + "/".join(quote(part, safe="") for part in (entity, project, run)) + "/file_stream"
        more = {"X-Wandb-Use-Async-Filestream": "true", "X-Wandb-Async-Client-Id": shared} if shared else {}
        return _object(self._post(path, body, "lines of the run", more)).get("stopped") is True

    def _post(
        self, path: str, body: Mapping[str, Any], what: str, more: Mapping[str, str] | None = None
    ) -> ServerResponse:
        secret = authorization(self._http.url, self._environ)
        if secret is None:
            raise self._unauthorized(
                f"no API key for {self._http.url}: run `wandb login` or set WANDB_API_KEY", secret
            )
        headers = {
            "Authorization": secret,
            "Content-Type": "application/json",
            "User-Agent": f"runvitals/{__version__}",
            **(more or {}),
        }
        response = self._http.post(path, json.dumps(body).encode(), headers)
        if response.status in _UNAUTHORIZED:
            raise self._unauthorized(
                f"{self._http.url} rejected the API key: {response.status} {response.text()}", secret
            )
        if 200 <= response.status < 300:
            return response
        text = f"{self._http.url}, {what}: {response.status} {response.text()}".strip()
        if response.temporary:
            raise Retry(text, response.retry_after_s)
        raise Rejected(text)

    def _unauthorized(self, text: str, secret: str | None) -> Unauthorized:
        def has_another_key() -> bool:
            try:
                return authorization(self._http.url, self._environ) not in (None, secret)
            except (OSError, ValueError):  # ~/.netrc is being edited
                return False

        return Unauthorized(text, has_another_key)

    def close(self) -> None:
        """Close the connection."""
        self._http.close()


def _object(response: ServerResponse) -> dict[str, Any]:
    try:
        value = json.loads(response.body or b"{}")
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Retry(f"unexpected response of W&B: {response.text()[:200]}")
    return value
