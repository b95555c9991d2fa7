"""W&B's HTTP interface, as far as a run's numbers and texts need it: one GraphQL call that makes the run, and
the stream of lines of its files. Both may be repeated: lines are written at their numbers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from runvitals import __version__
from runvitals.relay.destination import Rejected, Retry
from runvitals.relay.wandb.account import authorization
from runvitals.relay.web import HttpClient, HttpResponse

_KEY_WAIT_S = 300.0
_REFUSED = frozenset({401, 403})

# Called by W&B's own client, with more fields, since 2019.
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
        base_url: `https://api.wandb.ai`, or of a server of one's own.
        environ: where the key is looked for, at every request.

    Raises:
        ValueError: no URL.
    """

    def __init__(self, base_url: str, environ: Mapping[str, str]) -> None:
        self._web = HttpClient(base_url)
        self._environ = environ

    def upsert(self, variables: Mapping[str, Any]) -> tuple[str, str]:
        """Make a run, or change what is known of it: (entity, project) that it has then.

        Args:
            variables: name (the run's id), project, entity, displayName, notes, groupName, jobType, config
                (JSON text), host, tags; None and what is missing stay as they are.

        Raises:
            Retry: not now.
            Rejected: never.
        """
        question = {"query": _UPSERT, "variables": dict(variables), "operationName": "UpsertBucket"}
        answer = _object(self._post("/graphql", question, "the run"))
        if answer.get("errors"):
            said = "; ".join(str(error.get("message", error)) for error in answer["errors"])
            raise Rejected(f"W&B does not take the run: {said}")
        try:
            project = answer["data"]["upsertBucket"]["bucket"]["project"]
            return str(project["entity"]["name"]), str(project["name"])
        except (KeyError, TypeError):
            raise Rejected(f"W&B's answer is none that is known: {str(answer)[:200]}") from None

    def stream(self, entity: str, project: str, run: str, body: Mapping[str, Any], shared: str = "") -> bool:
        """Send lines of a run's files; True when somebody asks there for the end of the run.

        Args:
            body: files, complete, exitcode. Empty: a sign of life.
            shared: who we are among several that write to the run; "": the only one.

        Raises:
            Retry: not now.
            Rejected: never.
        """
        path = "/files/" + "/".join(quote(part, safe="") for part in (entity, project, run)) + "/file_stream"
        more = {"X-Wandb-Use-Async-Filestream": "true", "X-Wandb-Async-Client-Id": shared} if shared else {}
        return _object(self._post(path, body, "lines of the run", more)).get("stopped") is True

    def _post(
        self, path: str, body: Mapping[str, Any], what: str, more: Mapping[str, str] | None = None
    ) -> HttpResponse:
        secret = authorization(self._web.url, self._environ)
        if secret is None:
            raise Retry(f"no key for {self._web.url}: `wandb login`, or WANDB_API_KEY", _KEY_WAIT_S)
        headers = {
            "Authorization": secret,
            "Content-Type": "application/json",
            "User-Agent": f"runvitals/{__version__}",
            **(more or {}),
        }
        answer = self._web.post(path, json.dumps(body).encode(), headers)
        if answer.status in _REFUSED:
            raise Retry(
                f"{self._web.url} does not take the key: {answer.status} {answer.text()}", _KEY_WAIT_S
            )
        answer.check(f"{self._web.url}, {what}")
        return answer

    def close(self) -> None:
        self._web.close()


def _object(answer: HttpResponse) -> dict[str, Any]:
    try:
        value = json.loads(answer.body or b"{}")
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Retry(f"this is no answer of W&B: {answer.text()[:200]}")
    return value
