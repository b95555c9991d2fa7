"""The destination `http://host:8900` or `https://…`: a runvitals server.

Exactly once: the server identifies each envelope by (run, writer, number of its first record) and stores it
    only
once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from runvitals.journal.json_codec import loads
from runvitals.model.limits import AHEAD_MS, OLDEST_SENT_MS
from runvitals.relay.batch import Batch
from runvitals.relay.destination import (
    Context,
    Destination,
    Paused,
    Rejected,
    RejectedRecord,
    Retry,
    TooEarly,
    Unauthorized,
)
from runvitals.relay.destinations.runvitals import login, msgpack
from runvitals.relay.destinations.runvitals.compression import BodyCompressor
from runvitals.relay.destinations.runvitals.envelopes import Part, halves, parts
from runvitals.relay.engine.http_client import HttpClient, HttpResponse

PATH = "/api/v1/ingest"
HEARTBEAT_S = 10.0
_PERMANENT = frozenset({400, 413, 415, 422})
_UNKNOWN_SCHEMA = 409
_OUT_OF_RANGE = 422
_TOO_LARGE = 413
# The server rejects times more than a day ahead of its clock, which has advanced since it answered.
_AHEAD_MS = AHEAD_MS - 60_000
_MOST_TEXTS = 10
_MAX_SCHEMAS = 1000


class RunvitalsDestination(Destination):
    """Delivers to a runvitals server.

    Args:
        address: the URL of the server.
        context: `state["log_ms"]` keeps the time of the last `log()` row of each writer.

    Raises:
        ValueError: invalid URL.
    """

    name = "runvitals"
    interval_s = 5.0
    heartbeat_s = HEARTBEAT_S

    def __init__(self, address: str, context: Context) -> None:
        self._web = HttpClient(address)
        self._context = context
        self._packer = BodyCompressor()
        self._schemas: dict[tuple[str, ...], int] = {}
        self._introduced: set[str] = set()
        self._stop_asked = False
        self._in_trash = False
        self._log_ms: dict[str, int] = context.state.setdefault("log_ms", {})

    def deliver(self, batch: Batch) -> None:
        writer = batch.writer.name
        if self._in_trash:
            self._sign_of_life(batch)  # tells whether the run was restored, without sending the batch in vain
        found, log_ms = parts(batch, self._log_ms.get(writer, 0))
        if not found:
            self._sign_of_life(batch)
            return
        refused: list[RejectedRecord] = []
        early: list[str] = []
        self._send_all(batch, [_recent(part, refused) for part in found], refused, early)
        if early:
            raise TooEarly(early[0])  # later rows of `log()` must not wait because of wrong times
        if log_ms:
            self._log_ms[writer] = log_ms
        if refused:
            texts = dict.fromkeys(one.why for one in refused)
            raise Rejected("; ".join(list(texts)[:_MOST_TEXTS]), sum(map(_points, refused)), refused)

    def close(self) -> None:
        self._web.close()

    def _sign_of_life(self, batch: Batch) -> None:
        self._introduced.discard(batch.writer.name)
        answer = self._post(self._head(batch))
        if _is_refusal(answer):
            raise Rejected(_said(answer))
        self._heed([_object(answer)])
        self._introduced.add(batch.writer.name)

    def _send_all(
        self, batch: Batch, found: Sequence[Part | None], refused: list[RejectedRecord], early: list[str]
    ) -> None:
        """Send everything in one request; if the server rejects it, split it in halves, down to single
        records.

        Args:
            refused: collects the records that are rejected permanently.
            early: collects the reason why some are accepted later.
        """
        parts = [part for part in found if part is not None]
        if not parts:
            return
        answer = self._send(batch, parts)
        if not _is_refusal(answer):
            acks = self._acks(answer, parts)
            self._introduced.add(batch.writer.name)
            self._check_stored(batch, parts, acks)
            return
        middle = len(parts) // 2
        if middle:
            self._send_all(batch, parts[:middle], refused, early)
            self._send_all(batch, parts[middle:], refused, early)
            return
        part, later = self._by_time(answer, parts[0])
        if later is not None:
            early.append(self._why_early(answer, later))
            self._send_all(batch, [part], refused, early)
        elif len(parts[0].every_ms) > 1:
            self._send_all(batch, halves(parts[0]), refused, early)
        else:
            refused.append(
                RejectedRecord(parts[0].seq, parts[0].every_ms[0], parts[0].record(), _said(answer))
            )

    def _by_time(self, answer: HttpResponse, part: Part) -> tuple[Part | None, Part | None]:
        """Split a rejected part by the server's clock: what to send now, and what the server accepts
        later."""
        server_ms = answer.date_ms
        if answer.status != _OUT_OF_RANGE or server_ms is None:
            return part, None
        times_ms = part.every_ms
        later = [i for i, time_ms in enumerate(times_ms) if time_ms > server_ms + _AHEAD_MS]
        if not later:
            return part, None
        now = sorted(set(range(len(times_ms))).difference(later))
        return part.some(now) if now else None, part.some(later)

    def _why_early(self, answer: HttpResponse, part: Part) -> str:
        server_ms = answer.date_ms or 0
        ahead_h = (max(part.every_ms) - server_ms) / 3_600_000
        text = f"times up to {ahead_h:.0f} h ahead of the clock of {self._web.url}; they are delivered later"
        wrong_h = (time.time() * 1000 - server_ms) / 3_600_000
        if wrong_h > 1:
            text += f"; the clock of this host is {wrong_h:.0f} h ahead of it: correct it (NTP)"
        return text

    def _check_stored(self, batch: Batch, found: list[Part], acks: list[dict[str, Any]]) -> None:
        """Handle a record number that the server already has, though we never sent it: our position was lost,
        and the envelope stored under that number may have held fewer records. Its first record is stored;
        send the others.
        """
        if batch.repeated:
            return
        for part, ack in zip(found, acks, strict=True):
            stored = bool(ack["stored"])
            while not stored and len(part.every_ms) > 1:
                part = part.some(range(1, len(part.every_ms)))
                answer = self._send(batch, [part])
                if _is_refusal(answer):
                    raise Rejected(_said(answer))
                stored = bool(self._acks(answer, [part])[0]["stored"])

    def _send(self, batch: Batch, found: list[Part]) -> HttpResponse:
        answer = self._post(self._envelopes(batch, found))
        if (
            answer.status == _UNKNOWN_SCHEMA
        ):  # the server no longer knows the schema numbers, or another server assigned them
            self._schemas.clear()
            answer = self._post(self._envelopes(batch, found))
        return answer

    def _envelopes(self, batch: Batch, found: list[Part]) -> Any:
        head = self._head(batch)
        envelopes = []
        for part in found:
            envelopes.append({**head, **part.fields(self._packer, self._schemas.get(part.keys))})
            head = {"run": batch.run.id, "writer": batch.writer.name}
        return envelopes[0] if len(envelopes) == 1 else envelopes

    def _head(self, batch: Batch) -> dict[str, Any]:
        head: dict[str, Any] = {"run": batch.run.id, "writer": batch.writer.name}
        if batch.writer.name not in self._introduced:
            head["project"] = batch.run.project
            head["about"] = self._about(batch)
        return head

    def _about(self, batch: Batch) -> dict[str, Any]:
        writer = batch.writer
        about = {
            "role": writer.role,
            "host": writer.host,
            "pid": writer.pid,
            "rank": writer.rank,
            "local_rank": writer.local_rank,
            "world_size": writer.world_size,
            "interval_s": HEARTBEAT_S,
            "started_ms": writer.started_ms or None,
            "boot_id": writer.boot_id or None,
            "labels": writer.labels or None,
        }
        return {key: value for key, value in about.items() if value is not None}

    def _post(self, envelopes: Any) -> HttpResponse:
        body, encoding = self._packer.content(msgpack.pack(envelopes))
        headers = {"Content-Type": "application/msgpack", "Content-Encoding": encoding}
        environ = self._context.environ
        token = login.token(self._web.url, environ)
        if token:
            headers["Authorization"] = f"Bearer {token}"
        try:
            answer = self._web.post(PATH, body, headers)
        except OSError:
            self._introduced.clear()
            raise
        if answer.status == 200 or _is_refusal(answer) or answer.status == _UNKNOWN_SCHEMA:
            return answer
        self._introduced.clear()
        if answer.status in (401, 403):
            what = "rejected the token" if token else "requires a token"
            before = login.stamp(environ)
            raise Unauthorized(
                f"{self._web.url} {what}: {login.remedy(self._web.url, environ)}",
                lambda: login.stamp(environ) != before,
            )
        # Any other response of a proxy, or of a server that is not ours: not the fault of the run.
        raise Retry(f"{self._web.url}{PATH}: {_said(answer)}", answer.retry_after_s)

    def _acks(self, answer: HttpResponse, found: list[Part]) -> list[dict[str, Any]]:
        value = _object(answer)
        acks = value.get("acks", [value])
        if not isinstance(acks, list) or len(acks) != len(found) or not all(map(_is_ack, acks)):
            raise Retry(f"{self._web.url} sent an unexpected response: {answer.text()}")
        for part, ack in zip(found, acks, strict=True):
            schema = ack.get("schema")
            if schema is not None:
                if len(self._schemas) >= _MAX_SCHEMAS:
                    self._schemas.clear()
                self._schemas[part.keys] = schema
        self._heed(acks)
        return acks

    def _heed(self, acks: list[dict[str, Any]]) -> None:
        if any(ack.get("deleted") for ack in acks):
            self._in_trash = True
            raise Paused(f"the run is in the trash on {self._web.url}")
        self._in_trash = False
        if any(ack.get("stop") for ack in acks) and not self._stop_asked:
            self._stop_asked = True
            self._context.request_stop(f"requested on {self._web.url}")


def _object(answer: HttpResponse) -> dict[str, Any]:
    try:
        value = loads(answer.body)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Retry(f"expected a JSON object from the server: {answer.text()}")
    return value


def _is_ack(ack: Any) -> bool:
    schema = ack.get("schema") if isinstance(ack, dict) else 0
    return isinstance(ack, dict) and "stored" in ack and (schema is None or type(schema) is int)


def _recent(part: Part, refused: list[RejectedRecord]) -> Part | None:
    """The records of a part except those before the year 2000, which servers always reject."""
    recent = [i for i, time_ms in enumerate(part.every_ms) if time_ms >= OLDEST_SENT_MS]
    if len(recent) == len(part.every_ms):
        return part
    for i in sorted(set(range(len(part.every_ms))).difference(recent)):
        one = part.some([i])
        why = f"invalid time {one.every_ms[0]} ms UTC; expected {OLDEST_SENT_MS} (the year 2000) or later"
        refused.append(RejectedRecord(one.seq, one.every_ms[0], one.record(), why))
    return part.some(recent) if recent else None


def _points(one: RejectedRecord) -> int:
    """The number of values in a sample or log row."""
    return len(one.value.get("values") or one.value.get("data") or ()) if "kind" not in one.value else 0


def _is_refusal(answer: HttpResponse) -> bool:
    """Whether a runvitals server rejected it permanently; a proxy may answer 400 to anything."""
    if answer.status == _TOO_LARGE:
        return True
    return answer.status in _PERMANENT and _error(answer) is not None


def _error(answer: HttpResponse) -> str | None:
    """The error message of a runvitals server."""
    try:
        value = loads(answer.body)
    except ValueError:
        return None
    text = value.get("error") if isinstance(value, dict) else None
    return text if isinstance(text, str) else None


def _said(answer: HttpResponse) -> str:
    """A rejection as shown to the user."""
    return f"{answer.status} {_error(answer) or answer.text()}".strip()
