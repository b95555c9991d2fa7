"""Sends what users changed about a run on its own machine, with the times: of each fact the latest stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final
from urllib.parse import quote, urlencode

from runvitals.base.http_client import ServerResponse
from runvitals.base.json_codec import dumps
from runvitals.model.state import EDIT
from runvitals.relay.batch import INFO, Batch, Note
from runvitals.relay.destination import RejectedRecord, TooEarly

_FACTS: Final = frozenset({"name", "notes", "tags", "group", "job_type", "project", "starred"})
"""What a server takes in `PATCH /runs/{run}`."""
_REJECTED: Final = frozenset({400, 413, 415, 422})
_JSON: Final = {"Content-Type": "application/json"}
HANDLED: Final = (200, 307, 308, 403, 404, 409)

Request = Callable[[str, str, bytes, Mapping[str, str]], ServerResponse]
"""Sends a request (method, path, body, headers); raises `Retry` or `Unauthorized` for errors that an edit
did not cause."""
_Sent = tuple[str, str, bytes]


def is_edit(batch: Batch) -> bool:
    """Return whether a batch was written by users and not by the run."""
    return batch.writer.role == EDIT


def send_edits(
    batch: Batch, entity: str | None, request: Request, why: Callable[[ServerResponse], str]
) -> list[RejectedRecord]:
    """Send edits; return those that the server will never take.

    Args:
        why: the text of an error in a response.

    Raises:
        TooEarly: the server does not know the run yet, or the key may not do this. Later edits may follow.
    """
    rejected: list[RejectedRecord] = []
    for note in batch.notes_of(INFO):
        for method, path, body in _requests(batch.run.id, entity, note):
            response = request(method, path, body, _JSON)
            if response.status in _REJECTED:
                rejected.append(
                    RejectedRecord(note.seq, note.time_ms, {"kind": INFO, **note.value}, why(response))
                )
            elif response.status != 200:
                hint = "; a key that may only send runs cannot change them" if response.status == 404 else ""
                raise TooEarly(f"an edit made on this machine was not accepted: {why(response)}{hint}")
    return rejected


def _requests(run_id: str, entity: str | None, note: Note) -> Iterator[_Sent]:
    """Yield the requests of an edit: a restored run can be changed, and one that is deleted could."""
    facts = note.value.get("run")
    if not isinstance(facts, dict):
        return
    path = f"/api/v1/runs/{quote(run_id, safe='')}"
    query = urlencode({"at_ms": note.time_ms, **({} if entity is None else {"entity": entity})})
    deleted = facts.get("deleted")
    changes = {key: value for key, value in facts.items() if key in _FACTS}
    if deleted is False:
        yield "POST", f"{path}/restore?{query}", b"{}"
    if changes:
        yield "PATCH", f"{path}?{query}", dumps(changes)
    if deleted is True:
        yield "DELETE", f"{path}?{query}", b"{}"
