"""Checks everything about an envelope before anything of it is written."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from runvitals.model import json_values
from runvitals.model.limits import DEPTH
from runvitals.model.names import STEP
from runvitals.server.http.body_limits import Limits
from runvitals.server.http.request_errors import HttpRejection, malformed, out_of_range
from runvitals.server.ingest.columns import EnvelopeColumns, decode_columns
from runvitals.server.ingest.envelope import NOT_SENT, Envelope, decode_keys
from runvitals.server.ingest.envelope_access import IngestRights
from runvitals.server.ingest.metadata_records import EnvelopeMetadata, decode_metadata
from runvitals.server.ingest.writer_registry import WriterRegistry, registration
from runvitals.server.runs.storage.metrics import MAX_KEY, KeyList, MetricTable

_MAX_CACHED_LISTS = 20_000
_MAX_CACHED_BYTES = 32 << 20
_NULLS = (b"", b"null", b"\xc0")


@dataclass(slots=True)
class ValidEnvelope:
    """An envelope that can be stored as a whole.

    `raw_keys`: its list of keys as sent. `keys`: the same list, decoded; a tuple if the list may be new, None
    if the envelope has none.
    """

    envelope: Envelope
    raw_keys: bytes
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
    """Validates envelopes, and caches lists of keys under the bytes that they were sent as."""

    def __init__(self, metrics: MetricTable, writers: WriterRegistry, limits: Limits) -> None:
        self._metrics = metrics
        self._writers = writers
        self._limits = limits
        self._key_lists: dict[bytes, KeyList] = {}
        self._cached_bytes = 0

    def validate(
        self, envelope: Envelope, access: IngestRights, now_ms: int, max_bytes: int
    ) -> ValidEnvelope:
        """
        Args:
            access: what the request may send.
            max_bytes: maximum size of its times and values.

        Raises:
            HttpRejection: 400, 409, 413, 422, with what is wrong, where, and what is allowed.
        """
        if self._writers.find(envelope, access.known(envelope)) is None:
            registration(envelope)
            _check_labels(envelope)
        raw_keys = b"" if envelope.keys is NOT_SENT else bytes(envelope.keys)
        keys = self._keys(envelope, raw_keys)
        columns = decode_columns(envelope, _key_count(keys), now_ms, self._limits, max_bytes)
        if columns is not None and columns.has_step and self._includes_step(keys):
            raise out_of_range(f"keys: {STEP!r} is not allowed together with step, which is stored under it")
        metadata = decode_metadata(envelope, now_ms, self._limits)
        if envelope.seq is None and (columns is not None or metadata is not None):
            raise malformed("seq is missing; it numbers the envelopes of a writer")
        return ValidEnvelope(envelope, raw_keys, keys, columns, metadata)

    def cache_keys(self, raw_keys: bytes, keys: KeyList) -> None:
        """Recognize a list of keys when the same bytes are sent again."""
        if len(self._key_lists) >= _MAX_CACHED_LISTS or self._cached_bytes > _MAX_CACHED_BYTES:
            self._key_lists.clear()
            self._cached_bytes = 0
        self._key_lists[raw_keys] = keys
        self._cached_bytes += len(raw_keys)

    def _keys(self, envelope: Envelope, raw_keys: bytes) -> tuple[str, ...] | KeyList | None:
        cached = self._key_lists.get(raw_keys)
        if cached is not None:
            return cached
        if raw_keys not in _NULLS:
            return _check_keys(decode_keys(raw_keys, self._limits))
        if envelope.schema is None:
            if envelope.step is not None:
                return ()
            if envelope.t or envelope.v or envelope.body is not None:
                raise malformed("keys (or schema, the number of a list of keys) is missing")
            return None
        try:
            return self._metrics.schema_of(envelope.schema)
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


def _check_keys(keys: list[str]) -> tuple[str, ...]:
    for index, key in enumerate(keys):
        if not 1 <= len(key) <= MAX_KEY:
            shown = key if len(key) < 60 else f"{key[:60]}…"
            raise out_of_range(f"keys[{index}]: invalid key {shown!r}; expected 1 to {MAX_KEY} characters")
    if len(set(keys)) != len(keys):
        repeated, _ = Counter(keys).most_common(1)[0]
        raise out_of_range(f"keys: {repeated!r} occurs more than once")
    return tuple(keys)
