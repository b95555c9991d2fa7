"""Envelopes, and how those that clients send are decoded: MessagePack or JSON. See docs/reference/ingest.md.

Only types are checked here, by msgspec's C code: 60 keys × 10 rows take 1.3 µs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import msgspec

from runvitals.base.buckets import Floats, Integers
from runvitals.server.access.principals import Principal
from runvitals.server.http.body_limits import Limits
from runvitals.server.http.request_errors import HttpRejection, malformed, too_large
from runvitals.server.runs.storage.writer_registration import Sender

_INT64 = 2**63
Int64 = Annotated[int, msgspec.Meta(ge=-_INT64, le=_INT64 - 1)]
Number = Annotated[int, msgspec.Meta(ge=0, le=_INT64 - 1)]
NOT_SENT = msgspec.Raw()


class WriterDescription(msgspec.Struct, frozen=True):
    """`about`: describes a writer, like the START record of its journal."""

    role: str | None = None
    host: str | None = None
    pid: Int64 | None = None
    rank: Int64 | None = None
    local_rank: Int64 | None = None
    world_size: Int64 | None = None
    interval_s: float | None = None
    started_ms: Int64 | None = None
    boot_id: str | None = None
    labels: dict[str, Any] | None = None


class Envelope(msgspec.Struct):
    """A batch of one writer: its records, and in one of the two forms below its rows."""

    run: str
    writer: str
    seq: Number | None = None
    project: str | None = None
    entity: str | None = None
    about: WriterDescription | None = None
    records: list[tuple[Number, str, dict[str, Any]]] | None = None


class WireEnvelope(Envelope):
    """An envelope as clients send it.

    `keys` are decoded only if their bytes are new, because the same keys repeat.
    """

    keys: msgspec.Raw = NOT_SENT
    schema: Number | None = None
    t: bytes | list[int] | None = None
    v: bytes | list[list[float | None]] | None = None
    body: bytes | None = None
    step: bytes | list[float] | None = None


class ArrayEnvelope(Envelope, kw_only=True):
    """An envelope that this process makes of what other clients send. Nobody changes its arrays afterwards.

    `keys`: none if they are those of `schema`. `t`: ms UTC. `values`: of shape (rows, keys).
    """

    keys: tuple[str, ...] = ()
    schema: int | None = None
    t: Integers
    values: Floats
    steps: Floats | None = None


class RequestedCommand(msgspec.Struct, frozen=True):
    """A command that the host runs if its user registered it. `id`: the same when it is requested again."""

    id: int
    name: str


class Ack(msgspec.Struct, omit_defaults=True):
    """The envelope is durable. `stored` is false if it was already stored by an earlier request."""

    run: str
    writer: str
    seq: int | None
    stored: bool
    schema: int | None
    stop: bool
    deleted: bool
    commands: tuple[RequestedCommand, ...] = ()


_MSGPACK, _JSON = "application/msgpack", "application/json"
_TYPES = {
    _MSGPACK: _MSGPACK,
    "application/x-msgpack": _MSGPACK,
    "application/vnd.msgpack": _MSGPACK,
    _JSON: _JSON,
}
_decode_msgpack = msgspec.msgpack.Decoder(WireEnvelope | list[WireEnvelope]).decode
_decode_json = msgspec.json.Decoder(WireEnvelope | list[WireEnvelope]).decode
_DECODERS: dict[str, Callable[[bytes], WireEnvelope | list[WireEnvelope]]] = {
    _MSGPACK: _decode_msgpack,
    _JSON: _decode_json,
}
_decode_keys_msgpack = msgspec.msgpack.Decoder(list[str]).decode
_decode_keys_json = msgspec.json.Decoder(list[str]).decode
_INDEX = re.compile(r"`\$\[(\d+)\]")


def decode_envelopes(data: bytes, content_type: str, limits: Limits) -> tuple[list[WireEnvelope], bool]:
    """Decode the envelopes of a body. Returns them, and whether the body was a list.

    Args:
        content_type: value of the header, with or without parameters.

    Raises:
        HttpRejection: 415 for an unknown type, 400 for an invalid envelope, 413 for too many envelopes.
    """
    media_type = _TYPES.get(content_type) or _TYPES.get(content_type.partition(";")[0].strip().lower())
    if media_type is None:
        expected = f"{_JSON}, {_MSGPACK} or application/x-msgpack"
        raise HttpRejection(415, f"unknown Content-Type {content_type!r}; expected {expected}")
    try:
        decoded = _DECODERS[media_type](data)
    except msgspec.MsgspecError as error:
        raise _invalid(str(error)) from None
    except (RecursionError, UnicodeDecodeError, TypeError, ValueError) as error:
        raise _invalid(str(error)) from None
    if not isinstance(decoded, list):
        _check_types(decoded, media_type)
        return [decoded], False
    if len(decoded) > limits.envelopes:
        raise too_large(f"{len(decoded)} envelopes in one request; at most {limits.envelopes} are allowed")
    for index, envelope in enumerate(decoded):
        try:
            _check_types(envelope, media_type)
        except HttpRejection as error:
            error.index = index
            raise
    return decoded, True


def _invalid(text: str) -> HttpRejection:
    match = _INDEX.search(text)
    return HttpRejection(400, f"invalid envelope: {text}", index=int(match[1]) if match else None)


def _check_types(envelope: WireEnvelope, media_type: str) -> None:
    """Check what differs between the two formats: only MessagePack has bytes."""
    if media_type != _JSON:
        return
    for name in ("t", "v", "body", "step"):
        if isinstance(getattr(envelope, name), bytes):
            raise malformed(
                f"{name} is a string; expected a list in JSON (bytes, and body, need MessagePack)"
            )


def decode_keys(raw: bytes, limits: Limits) -> list[str]:
    """Decode the list of keys of an envelope.

    Raises:
        HttpRejection: 400 if it is not a list of strings, 413 for too many keys.
    """
    # No MessagePack array begins with this byte.
    decode = _decode_keys_json if raw.lstrip()[:1] == b"[" else _decode_keys_msgpack
    try:
        keys = decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise malformed(f"keys: {error}") from None
    if len(keys) > limits.keys:
        raise too_many_keys(len(keys), limits)
    return keys


def too_many_keys(count: int, limits: Limits) -> HttpRejection:
    """Return the rejection of an envelope with more keys than one may have."""
    return too_large(f"{count} keys; at most {limits.keys} are allowed in one envelope")


@dataclass(frozen=True, slots=True)
class AdmittedEnvelope:
    """An envelope that may be stored.

    Args:
        sender: the entity of its run, and whose a new run is.
        ignored_attribution: why the user whom a service account named is not the author of a new run.
        project: of a new run whose envelope names none, though the request or its records do.
        principal: the owner of the key that sends it, with the key's limits; None without accounts.
    """

    sender: Sender
    ignored_attribution: str | None = None
    project: str | None = None
    principal: Principal | None = None


class SentEnvelope(NamedTuple):
    """An envelope, and the projects to which its records move the run."""

    envelope: Envelope
    projects: tuple[str, ...] = ()
