"""Checks everything about an envelope before anything of it is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from runvitals.model import json_values
from runvitals.model.limits import DEPTH
from runvitals.model.names import STEP
from runvitals.server.http.body_limits import Limits
from runvitals.server.http.request_errors import HttpRejection, malformed, out_of_range
from runvitals.server.ingest.columns import EnvelopeColumns, check_columns, decode_columns
from runvitals.server.ingest.envelope import (
    NOT_SENT,
    ArrayEnvelope,
    Envelope,
    WireEnvelope,
    decode_keys,
    too_many_keys,
)
from runvitals.server.ingest.metadata_records import EnvelopeMetadata, decode_metadata
from runvitals.server.ingest.sender_rights import IngestRights
from runvitals.server.ingest.writer_registry import WriterRegistry, registration
from runvitals.server.runs.storage.metrics import MAX_KEY, KeyList, MetricTable

_MAX_CACHED_LISTS = 20_000
_MAX_CACHED_BYTES = 32 << 20
_NULLS = (b"", b"null", b"\xc0")
_encode_keys = msgspec.msgpack.Encoder().encode
SentKeys = bytes | tuple[str, ...]
"""A list of keys: encoded as a client has sent it, or as a door has made it. Empty: none."""


class _Keys(NamedTuple):
    """A list of keys, and how many bytes it takes encoded."""

    keys: tuple[str, ...] | KeyList | None
    size: int


@dataclass(slots=True)
class ValidEnvelope:
    """An envelope that can be stored as a whole.

    `sent_keys`: its list of keys as sent, of `keys_bytes` bytes. `keys`: the same list, decoded; a tuple if
    the list may be new, None if the envelope has none.
    """

    envelope: Envelope
    sent_keys: SentKeys
    keys_bytes: int
    keys: tuple[str, ...] | KeyList | None
    columns: EnvelopeColumns | None
    metadata: EnvelopeMetadata | None

    @property
    def last_ms(self) -> int:
        """Time of the newest row or record; 0 if there is none."""
        last_ms = 0 if self.columns is None else self.columns.last_ms
        return last_ms if self.metadata is None else max(last_ms, self.metadata.last_ms)

    def oldest_ms(self, now_ms: int) -> int | None:
        """Time of the oldest row, at most now; None if there is none."""
        if self.columns is None or not len(self.columns.t):
            return None
        return min(now_ms, int(self.columns.t.min()))


class EnvelopeValidator:
    """Validates envelopes, and caches lists of keys under what they were sent as."""

    def __init__(self, metrics: MetricTable, writers: WriterRegistry, limits: Limits) -> None:
        self._metrics = metrics
        self._writers = writers
        self._limits = limits
        self._key_lists: dict[SentKeys, _Keys] = {}
        self._cached_bytes = 0

    def validate(
        self, envelope: Envelope, access: IngestRights, now_ms: int, max_bytes: int
    ) -> ValidEnvelope:
        """Check an envelope before anything of it is written.

        Args:
            access: what the request may send.
            max_bytes: maximum size of its times and values.

        Raises:
            HttpRejection: 400, 409, 413, 422, with what is wrong, where, and what is allowed.
        """
        if self._writers.find(envelope, access.known(envelope)) is None:
            registration(envelope)
            _check_labels(envelope)
        sent_keys: SentKeys = b""
        keys, keys_bytes, columns = None, 0, None
        if isinstance(envelope, WireEnvelope):
            sent_keys = b"" if envelope.keys is NOT_SENT else bytes(envelope.keys)
            keys, keys_bytes = self._keys_of_client(envelope, sent_keys)
            columns = decode_columns(envelope, _key_count(keys), now_ms, self._limits, max_bytes)
        elif isinstance(envelope, ArrayEnvelope):
            sent_keys = envelope.keys
            keys, keys_bytes = self._keys_of_door(envelope)
            columns = check_columns(envelope, now_ms, self._limits)
        if columns is not None and columns.has_step and self._includes_step(keys):
            raise out_of_range(f"keys: {STEP!r} is not allowed together with step, which is stored under it")
        metadata = decode_metadata(envelope, now_ms, self._limits)
        if envelope.seq is None and (columns is not None or metadata is not None):
            raise malformed("seq is missing; it numbers the envelopes of a writer")
        return ValidEnvelope(envelope, sent_keys, keys_bytes, keys, columns, metadata)

    def cache_keys(self, sent: SentKeys, size: int, keys: KeyList) -> None:
        """Recognize a list of keys of so many bytes when the same is sent again."""
        if len(self._key_lists) >= _MAX_CACHED_LISTS or self._cached_bytes > _MAX_CACHED_BYTES:
            self._key_lists.clear()
            self._cached_bytes = 0
        self._key_lists[sent] = _Keys(keys, size)
        self._cached_bytes += size

    def _keys_of_client(self, envelope: WireEnvelope, sent: bytes) -> _Keys:
        cached = self._key_lists.get(sent)
        if cached is not None:
            return cached
        if sent not in _NULLS:
            return _Keys(_check_keys(decode_keys(sent, self._limits)), len(sent))
        if envelope.schema is not None:
            return self._keys_of_schema(envelope.schema)
        if envelope.step is not None:
            return _Keys((), 0)
        if envelope.t or envelope.v or envelope.body is not None:
            raise malformed("keys (or schema, the number of a list of keys) is missing")
        return _Keys(None, 0)

    def _keys_of_door(self, envelope: ArrayEnvelope) -> _Keys:
        cached = self._key_lists.get(envelope.keys)
        if cached is not None:
            return cached
        if envelope.schema is not None:
            return self._keys_of_schema(envelope.schema)
        if len(envelope.keys) > self._limits.keys:
            raise too_many_keys(len(envelope.keys), self._limits)
        return _Keys(_check_keys(envelope.keys), len(_encode_keys(envelope.keys)))

    def _keys_of_schema(self, schema: int) -> _Keys:
        try:
            return _Keys(self._metrics.schema_of(schema), 0)
        except LookupError as error:
            raise HttpRejection(409, str(error)) from None

    def _includes_step(self, keys: tuple[str, ...] | KeyList | None) -> bool:
        if isinstance(keys, KeyList):
            return STEP in self._metrics.keys(keys.metric_ids).values()
        return keys is not None and STEP in keys


def _check_labels(envelope: Envelope) -> None:
    try:
        json_values.check(envelope.about.labels if envelope.about is not None else None, DEPTH + 1)
    except ValueError as error:
        raise out_of_range(f"about.labels: {error}") from None


def _key_count(keys: tuple[str, ...] | KeyList | None) -> int:
    if isinstance(keys, KeyList):
        return len(keys.metric_ids)
    return len(keys) if keys else 0


def _check_keys(keys: Sequence[str]) -> tuple[str, ...]:
    for index, key in enumerate(keys):
        if not 1 <= len(key) <= MAX_KEY:
            excerpt = key if len(key) < 60 else f"{key[:60]}…"
            raise out_of_range(f"keys[{index}]: invalid key {excerpt!r}; expected 1 to {MAX_KEY} characters")
    if len(set(keys)) != len(keys):
        repeated, _ = Counter(keys).most_common(1)[0]
        raise out_of_range(f"keys: {repeated!r} occurs more than once")
    return tuple(keys)
