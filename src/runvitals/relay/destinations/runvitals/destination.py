"""The destination `http://host:8900` or `https://…`: a runvitals server.

Exactly once: the server identifies each envelope by (run, writer, number of its first record) and stores it
only once.
"""

from __future__ import annotations

import platform
import time
import zlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from runvitals.base import stored_keys
from runvitals.base.http_client import Body, HttpClient, ServerResponse
from runvitals.base.json_codec import loads
from runvitals.model.limits import AHEAD_MS, OLDEST_SENT_MS
from runvitals.relay.batch import MEDIA, Batch
from runvitals.relay.destination import (
    Context,
    Destination,
    Paused,
    Rejected,
    RejectedRecord,
    Retry,
    TooEarly,
    Unauthorized,
    Unfinished,
)
from runvitals.relay.destinations.runvitals import msgpack
from runvitals.relay.destinations.runvitals.compression import BodyCompressor
from runvitals.relay.destinations.runvitals.edits import HANDLED, is_edit, send_edits
from runvitals.relay.destinations.runvitals.envelopes import Part, split_batch, split_in_half
from runvitals.relay.destinations.runvitals.uploads import FileUploads

PATH = "/api/v1/ingest"
HEARTBEAT_S = 10.0
SENDER_HEADER = "X-Runvitals-Sender"
"""A number of this machine, by which a proxy sends all its requests to one server (`deploy/proxies`)."""
_PERMANENT = frozenset({400, 413, 415, 422})
_UNKNOWN_SCHEMA = 409
_UNSUPPORTED = 405
_NO_SPACE = (503, 507)
_NOT_THERE = 404
_HANDLED = (200, _UNKNOWN_SCHEMA, _UNSUPPORTED)
_OUT_OF_RANGE = 422
_TOO_LARGE = 413
# The server rejects times more than a day ahead of its clock, which has advanced since it responded.
_AHEAD_MS = AHEAD_MS - 60_000
_MAX_REASONS = 10
_MAX_SCHEMAS = 1000
_MAX_AUTHOR = 256
_FILES_AT_ONCE = 4


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
        self._http = HttpClient(address)
        self._context = context
        self._compressor = BodyCompressor()
        self._schemas: dict[tuple[str, ...], int] = {}
        self._introduced: set[str] = set()
        self._of_files = [self._http, *(HttpClient(address) for _ in range(_FILES_AT_ONCE - 1))]
        requests = [partial(self._request_of_file, http) for http in self._of_files]
        self._uploads = FileUploads(context.folder, context.run_id, requests)
        self._stop_requested = False
        self._in_trash = False
        self._sender = f"{zlib.crc32(platform.node().encode()):08x}"
        self._log_ms: dict[str, int] = context.state.setdefault("log_ms", {})

    def deliver(self, batch: Batch) -> None:
        """Upload the files of a batch, then send its records; without any, a heartbeat."""
        if is_edit(batch):
            self._deliver_edits(batch)
            return
        writer = batch.writer.name
        if self._in_trash:
            self._send_heartbeat(batch)  # shows whether the run was restored, without sending the batch
        rejected = self._upload_files(batch)
        parts, log_ms = split_batch(batch, self._log_ms.get(writer, 0))
        if not parts:
            self._send_heartbeat(batch)
            return
        early: list[str] = []
        self._send_all(batch, [_recent(part, rejected) for part in parts], rejected, early)
        if early:
            raise TooEarly(early[0])  # later rows of `log()` must not wait because of wrong times
        if log_ms:
            self._log_ms[writer] = log_ms
        if rejected:
            texts = dict.fromkeys(record.why for record in rejected)
            raise Rejected("; ".join(list(texts)[:_MAX_REASONS]), sum(map(_count_values, rejected)), rejected)

    def _deliver_edits(self, batch: Batch) -> None:
        rejected = send_edits(batch, _entity(batch), self._request_of_edit, _error_text)
        if rejected:
            raise Rejected("; ".join(dict.fromkeys(record.why for record in rejected)), 0, rejected)

    def _upload_files(self, batch: Batch) -> list[RejectedRecord]:
        """Upload the files that media records name, before the records.

        Returns the records of which a file will never arrive.

        Raises:
            Unfinished: the files take longer than one turn.
        """
        notes = batch.notes_of(MEDIA)
        if not notes:
            return []
        if batch.writer.name not in self._introduced:
            self._send_heartbeat(batch)  # files belong to a run that the server knows
        try:
            missing = self._uploads.upload(notes, _identification(batch).get("entity"))
        except Unfinished:
            progress = self._uploads.progress
            self._context.state["uploads"] = None if progress is None else progress._asdict()
            raise
        self._context.state.pop("uploads", None)
        for http in self._of_files[1:]:
            http.close()
        keys = {note.seq: (note.time_ms, str(note.value["key"])) for note in notes}
        rejected = []
        for seq, file in missing.items():
            time_ms, key = keys[seq]
            why = f"a file of {key!r} was not delivered: {file.why}"
            rejected.append(RejectedRecord(seq, time_ms, {"kind": MEDIA, "key": key, **file._asdict()}, why))
        return rejected

    def close(self) -> None:
        """Close the connections."""
        for http in self._of_files:
            http.close()

    def _send_heartbeat(self, batch: Batch) -> None:
        self._introduced.discard(batch.writer.name)
        response = self._post([self._head(batch)])
        if _is_rejection(response):
            raise Rejected(_error_text(response))
        ack = _json_object(response)
        if not _are_commands(ack.get("commands")):
            raise self._retry_unexpected(response)
        self._handle_acks([ack])
        self._introduced.add(batch.writer.name)

    def _send_all(
        self,
        batch: Batch,
        candidates: Sequence[Part | None],
        rejected: list[RejectedRecord],
        early: list[str],
    ) -> None:
        """Send everything in one request.

        If the server rejects it, split it in halves, down to single records.

        Args:
            rejected: collects the records that are rejected permanently.
            early: collects the reason why some are accepted later.
        """
        parts = [part for part in candidates if part is not None]
        if not parts:
            return
        response = self._send(batch, parts)
        if not _is_rejection(response):
            acks = self._acks(response, parts)
            self._introduced.add(batch.writer.name)
            self._check_stored(batch, parts, acks)
            return
        middle = len(parts) // 2
        if middle:
            self._send_all(batch, parts[:middle], rejected, early)
            self._send_all(batch, parts[middle:], rejected, early)
            return
        part, later = self._by_time(response, parts[0])
        if later is not None:
            early.append(self._why_early(response, later))
            self._send_all(batch, [part], rejected, early)
        elif len(parts[0].times_ms) > 1:
            self._send_all(batch, split_in_half(parts[0]), rejected, early)
        else:
            rejected.append(
                RejectedRecord(parts[0].seq, parts[0].times_ms[0], parts[0].content(), _error_text(response))
            )

    def _by_time(self, response: ServerResponse, part: Part) -> tuple[Part | None, Part | None]:
        """Split a rejected part by the server's clock into what to send now and what it accepts later."""
        server_ms = response.date_ms
        if response.status != _OUT_OF_RANGE or server_ms is None:
            return part, None
        times_ms = part.times_ms
        later = [i for i, time_ms in enumerate(times_ms) if time_ms > server_ms + _AHEAD_MS]
        if not later:
            return part, None
        now = sorted(set(range(len(times_ms))).difference(later))
        return part.select(now) if now else None, part.select(later)

    def _why_early(self, response: ServerResponse, part: Part) -> str:
        server_ms = response.date_ms or 0
        ahead_h = (max(part.times_ms) - server_ms) / 3_600_000
        text = f"times up to {ahead_h:.0f} h ahead of the clock of {self._http.url}; they are delivered later"
        wrong_h = (time.time() * 1000 - server_ms) / 3_600_000
        if wrong_h > 1:
            text += f"; the clock of this host is {wrong_h:.0f} h ahead of it: correct it (NTP)"
        return text

    def _check_stored(self, batch: Batch, parts: list[Part], acks: list[dict[str, Any]]) -> None:
        """Handle a record number that the server already has, though we never sent it.

        Our position was lost, and the envelope stored under that number may have held fewer records. Its
        first record is stored; send the others.
        """
        if batch.repeated:
            return
        for part, ack in zip(parts, acks, strict=True):
            stored = bool(ack["stored"])
            while not stored and len(part.times_ms) > 1:
                part = part.select(range(1, len(part.times_ms)))
                response = self._send(batch, [part])
                if _is_rejection(response):
                    raise Rejected(_error_text(response))
                stored = bool(self._acks(response, [part])[0]["stored"])

    def _send(self, batch: Batch, parts: list[Part]) -> ServerResponse:
        response = self._post(self._envelopes(batch, parts))
        # The server no longer knows the schema numbers, or another server assigned them.
        if response.status == _UNKNOWN_SCHEMA:
            self._schemas.clear()
            response = self._post(self._envelopes(batch, parts))
        return response

    def _envelopes(self, batch: Batch, parts: list[Part]) -> list[dict[str, Any]]:
        head = self._head(batch)
        envelopes = []
        for part in parts:
            envelopes.append({**head, **part.fields(self._compressor, self._schemas.get(part.keys))})
            head = _identification(batch)
        return envelopes

    def _head(self, batch: Batch) -> dict[str, Any]:
        head = _identification(batch)
        if batch.writer.name not in self._introduced:
            head["project"] = batch.run.run.get("project") or batch.run.project
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

    def _post(self, envelopes: list[dict[str, Any]]) -> ServerResponse:
        data = msgpack.pack(envelopes[0] if len(envelopes) == 1 else envelopes)
        packed_bytes = sum(len(envelope.get("body", b"")) for envelope in envelopes)
        body, encoding = self._compressor.content(data, packed_bytes)
        headers = {"Content-Type": "application/msgpack", "Content-Encoding": encoding}
        response = self._request("POST", PATH, body, headers)
        if response.status == _UNSUPPORTED:
            raise self._retry(PATH, response)
        return response

    def _request_of_file(
        self, http: HttpClient, method: str, path: str, body: Body, headers: Mapping[str, str]
    ) -> ServerResponse:
        """Send a request like `_request`, but return 404, 503 and 507.

        That a file cannot be stored concerns nothing else, nor that a server is older than a call.
        """
        return self._request(method, path, body, headers, (*_HANDLED, *_NO_SPACE, _NOT_THERE), http)

    def _request_of_edit(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str]
    ) -> ServerResponse:
        """Send a request like `_request`, but return what refuses an edit and nothing else."""
        return self._request(method, path, body, headers, HANDLED)

    def _request(
        self,
        method: str,
        path: str,
        body: Body,
        headers: Mapping[str, str],
        handled: Sequence[int] = _HANDLED,
        http: HttpClient | None = None,
    ) -> ServerResponse:
        """Return the response to a request: 200, or an error that the run caused.

        Args:
            handled: statuses of responses that are returned, too.
            http: another connection to the server.

        Raises:
            Retry: a temporary failure.
            Unauthorized: a user must act first.
        """
        environ = self._context.environ
        token = stored_keys.token(self._http.url, environ)
        sent = {SENDER_HEADER: self._sender, **headers}
        if token:
            sent["Authorization"] = f"Bearer {token}"
            sent.update(_author(environ))
        try:
            response = (http or self._http).request(method, path, body, sent)
        except OSError:
            self._introduced.clear()
            raise
        if response.status in handled or _is_rejection(response):
            return response
        self._introduced.clear()
        if response.status in (401, 403):
            version = stored_keys.file_version(environ)
            raise Unauthorized(
                self._why_unauthorized(response, token is not None),
                lambda: stored_keys.file_version(environ) != version,
            )
        raise self._retry(path, response)

    def _retry(self, path: str, response: ServerResponse) -> Retry:
        """Any other response of a proxy, or of a server that is not ours: not the fault of the run."""
        return Retry(
            f"{self._http.url}{path.partition('?')[0]}: {_error_text(response)}", response.retry_after_s
        )

    def _retry_unexpected(self, response: ServerResponse) -> Retry:
        """Return a retry after any other response of a proxy or another server: the run is not at fault."""
        return Retry(f"{self._http.url} sent an unexpected response: {response.text()}")

    def _why_unauthorized(self, response: ServerResponse, has_token: bool) -> str:
        if has_token and response.status == 403 and _error(response) is not None:
            return f"{self._http.url} does not accept the run: {_error_text(response)}"
        what = "rejected the token" if has_token else "requires a token"
        return f"{self._http.url} {what}: {stored_keys.remedy(self._http.url, self._context.environ)}"

    def _acks(self, response: ServerResponse, parts: list[Part]) -> list[dict[str, Any]]:
        value = _json_object(response)
        acks = value.get("acks", [value])
        if not isinstance(acks, list) or len(acks) != len(parts) or not all(map(_is_ack, acks)):
            raise self._retry_unexpected(response)
        for part, ack in zip(parts, acks, strict=True):
            schema = ack.get("schema")
            if schema is not None:
                if len(self._schemas) >= _MAX_SCHEMAS:
                    self._schemas.clear()
                self._schemas[part.keys] = schema
        self._handle_acks(acks)
        return acks

    def _handle_acks(self, acks: list[dict[str, Any]]) -> None:
        if any(ack.get("deleted") for ack in acks):
            self._in_trash = True
            raise Paused(f"the run is in the trash on {self._http.url}")
        self._in_trash = False
        for ack in acks:
            for command in ack.get("commands") or ():
                self._context.request_command(command["id"], str(command["name"]))
        if any(ack.get("stop") for ack in acks) and not self._stop_requested:
            self._stop_requested = True
            self._context.request_stop(f"requested on {self._http.url}")


def _identification(batch: Batch) -> dict[str, Any]:
    """Return the fields of every envelope.

    Run ids are unique within a team, which the server may not remember.
    """
    entity = _entity(batch)
    return {
        "run": batch.run.id,
        "writer": batch.writer.name,
        **({} if entity is None else {"entity": entity}),
    }


def _entity(batch: Batch) -> str | None:
    """Return the team or user that has the run, if the run names one."""
    # Journals from before every file named it have it in the settings only.
    entity = batch.run.entity or batch.run.settings.get("entity")
    return entity if isinstance(entity, str) and entity else None


def _author(environ: Mapping[str, str]) -> dict[str, str]:
    """Return headers that name the author of runs that a service account sends."""
    names = {
        "X-Runvitals-Username": environ.get("RUNVITALS_USERNAME") or environ.get("WANDB_USERNAME"),
        "X-Runvitals-User-Email": environ.get("RUNVITALS_USER_EMAIL") or environ.get("WANDB_USER_EMAIL"),
    }
    # A header is sent as Latin-1; the server reads UTF-8.
    return {
        header: text.encode().decode("latin-1")
        for header, text in names.items()
        if text and text.isprintable() and len(text) <= _MAX_AUTHOR
    }


def _json_object(response: ServerResponse) -> dict[str, Any]:
    try:
        value = loads(response.body)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Retry(f"expected a JSON object from the server: {response.text()}")
    return value


def _is_ack(ack: Any) -> bool:
    if not isinstance(ack, dict) or "stored" not in ack:
        return False
    schema = ack.get("schema")
    return (schema is None or type(schema) is int) and _are_commands(ack.get("commands"))


def _are_commands(commands: Any) -> bool:
    return commands is None or (
        isinstance(commands, list)
        and all(
            isinstance(command, dict) and type(command.get("id")) is int and "name" in command
            for command in commands
        )
    )


def _recent(part: Part, rejected: list[RejectedRecord]) -> Part | None:
    """Return the records of a part except those before the year 2000, which servers always reject."""
    recent = [i for i, time_ms in enumerate(part.times_ms) if time_ms >= OLDEST_SENT_MS]
    if len(recent) == len(part.times_ms):
        return part
    for i in sorted(set(range(len(part.times_ms))).difference(recent)):
        record = part.select([i])
        why = f"invalid time {record.times_ms[0]} ms UTC; expected {OLDEST_SENT_MS} (the year 2000) or later"
        rejected.append(RejectedRecord(record.seq, record.times_ms[0], record.content(), why))
    return part.select(recent) if recent else None


def _count_values(record: RejectedRecord) -> int:
    """Return the number of values in a sample or log row."""
    return (
        len(record.value.get("values") or record.value.get("data") or ()) if "kind" not in record.value else 0
    )


def _is_rejection(response: ServerResponse) -> bool:
    """Return whether a runvitals server rejected it permanently; a proxy may response 400 to anything."""
    if response.status == _TOO_LARGE:
        return True
    return response.status in _PERMANENT and _error(response) is not None


def _error(response: ServerResponse) -> str | None:
    """Return the error message of a runvitals server."""
    try:
        value = loads(response.body)
    except ValueError:
        return None
    text = value.get("error") if isinstance(value, dict) else None
    return text if isinstance(text, str) else None


def _error_text(response: ServerResponse) -> str:
    """Return a rejection as shown to the user."""
    return f"{response.status} {_error(response) or response.text()}".strip()
