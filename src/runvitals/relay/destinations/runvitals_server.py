"""Our own server: `http://host:8900` or `https://…`.

Exactly once: the server knows each envelope by (run, writer, number of its first record) and takes none
twice.
"""

from __future__ import annotations

import time
from typing import Any

from runvitals.journal.jsontext import loads
from runvitals.relay import login, msgpack
from runvitals.relay.batch import Batch
from runvitals.relay.destination import Context, Destination, Gone, NotLetIn, Rejected, Retry, TooEarly
from runvitals.relay.envelopes import Part, parts
from runvitals.relay.packing import Packer
from runvitals.relay.web import Answer, Web

PATH = "/api/v1/ingest"
HEARTBEAT_S = 10.0
_PERMANENT = frozenset({400, 413, 415, 422})
_UNKNOWN_SCHEMA = 409
_OUT_OF_RANGE = 422
# The server takes nothing that is more than a day ahead of its own clock, which went on since it answered.
_AHEAD_MS = 24 * 3_600_000 - 60_000
_MAX_SCHEMAS = 1000


class ServerDestination(Destination):
    """A runvitals server.

    Args:
        address: its URL.
        context: `state["log_ms"]` keeps the time of the last `log()` row of each writer.

    Raises:
        ValueError: no such URL.
    """

    name = "runvitals"
    interval_s = 5.0
    heartbeat_s = HEARTBEAT_S

    def __init__(self, address: str, context: Context) -> None:
        self._web = Web(address)
        self._context = context
        self._packer = Packer()
        self._schemas: dict[tuple[str, ...], int] = {}
        self._introduced: set[str] = set()
        self._stop_asked = False
        self._log_ms: dict[str, int] = context.state.setdefault("log_ms", {})

    def deliver(self, batch: Batch) -> None:
        writer = batch.writer.name
        found, log_ms = parts(batch, self._log_ms.get(writer, 0))
        if not found:
            self._sign_of_life(batch)
            return
        rejected, early = self._send_all(batch, found)
        if early:
            raise TooEarly(early[0])  # and the next rows of `log()` are not held back by times that are wrong
        if log_ms:
            self._log_ms[writer] = log_ms
        if rejected:
            raise Rejected("; ".join(rejected))

    def close(self) -> None:
        self._web.close()

    def _sign_of_life(self, batch: Batch) -> None:
        self._introduced.discard(batch.writer.name)
        answer = self._post(self._head(batch))
        if answer.status in _PERMANENT:
            raise Rejected(_said(answer))
        self._heed([_object(answer)])
        self._introduced.add(batch.writer.name)

    def _send_all(self, batch: Batch, found: list[Part]) -> tuple[list[str], list[str]]:
        """Everything in one request; one by one where the server does not like one of them. Why any was
        rejected, and why any is too early."""
        answer = self._send(batch, found)
        if answer.status not in _PERMANENT:
            acks = self._acks(answer, found)
            self._introduced.add(batch.writer.name)
            self._check_stored(batch, found, acks)
            return [], []
        if len(found) == 1:
            early = self._too_early(answer, found[0])
            return ([], [early]) if early else ([_said(answer)], [])
        parts = [self._send_all(batch, [part]) for part in found]
        return [text for some, _ in parts for text in some], [text for _, some in parts for text in some]

    def _too_early(self, answer: Answer, part: Part) -> str | None:
        """Why a refusal is one of times that lie ahead, if it is; by the server's own clock."""
        server_ms = answer.date_ms
        if answer.status != _OUT_OF_RANGE or server_ms is None:
            return None
        newest_ms = max(part.every_ms)
        if newest_ms <= server_ms + _AHEAD_MS:
            return None
        ahead_h = (newest_ms - server_ms) / 3_600_000
        text = f"times up to {ahead_h:.0f} h ahead of the clock of {self._web.url}, which takes them later"
        wrong_h = (time.time() * 1000 - server_ms) / 3_600_000
        if wrong_h > 1:
            text += f"; the clock of this host is {wrong_h:.0f} h ahead of it: set it right (NTP)"
        return text

    def _check_stored(self, batch: Batch, found: list[Part], acks: list[dict[str, Any]]) -> None:
        """A number that the server has had before, though we never sent it as far as we know: our position
        was lost, and what was stored under it may have been less. Its first record was there; send the
        others."""
        if batch.repeated:
            return
        for part, ack in zip(found, acks, strict=True):
            rest = part.rest()
            stored = bool(ack["stored"])
            while rest is not None and not stored:
                answer = self._send(batch, [rest])
                if answer.status in _PERMANENT:
                    raise Rejected(_said(answer))
                stored = bool(self._acks(answer, [rest])[0]["stored"])
                rest = rest.rest()

    def _send(self, batch: Batch, found: list[Part]) -> Answer:
        answer = self._post(self._envelopes(batch, found))
        if (
            answer.status == _UNKNOWN_SCHEMA
        ):  # the server does not know the numbers that it gave, or another did
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

    def _post(self, envelopes: Any) -> Answer:
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
        if answer.status == 200 or answer.status in _PERMANENT or answer.status == _UNKNOWN_SCHEMA:
            return answer
        self._introduced.clear()
        if answer.status in (401, 403):
            what = "does not accept the token" if token else "asks for a token"
            before = login.stamp(environ)
            raise NotLetIn(
                f"{self._web.url} {what}: {login.remedy(self._web.url, environ)}",
                lambda: login.stamp(environ) != before,
            )
        # What else a server that is not ours, or a proxy before it, may answer: nothing of the run's doing.
        raise Retry(f"{self._web.url}{PATH}: {_said(answer)}", answer.retry_after_s)

    def _acks(self, answer: Answer, found: list[Part]) -> list[dict[str, Any]]:
        value = _object(answer)
        acks = value.get("acks", [value])
        if not isinstance(acks, list) or len(acks) != len(found) or not all("stored" in ack for ack in acks):
            raise Retry(f"{self._web.url} answered something else than acknowledgements: {answer.text()}")
        for part, ack in zip(found, acks, strict=True):
            if ack.get("schema") is not None:
                if len(self._schemas) >= _MAX_SCHEMAS:
                    self._schemas.clear()
                self._schemas[part.keys] = int(ack["schema"])
        self._heed(acks)
        return acks

    def _heed(self, acks: list[dict[str, Any]]) -> None:
        if any(ack.get("deleted") for ack in acks):
            raise Gone(f"the run was deleted on {self._web.url}")
        if any(ack.get("stop") for ack in acks) and not self._stop_asked:
            self._stop_asked = True
            self._context.request_stop(f"asked for on {self._web.url}")


def _object(answer: Answer) -> dict[str, Any]:
    try:
        value = loads(answer.body)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Retry(f"the server answered no JSON object: {answer.text()}")
    return value


def _said(answer: Answer) -> str:
    """A refusal as a person reads it."""
    try:
        value = loads(answer.body)
    except ValueError:
        value = None
    text = value.get("error") if isinstance(value, dict) else None
    return f"{answer.status} {text or answer.text()}".strip()
