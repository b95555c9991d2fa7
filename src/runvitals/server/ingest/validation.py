"""Looking at an envelope from all sides before anything of it is written."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from runvitals.model.names import STEP
from runvitals.server.ingest.columns import Columns, columns
from runvitals.server.ingest.envelope import NOT_SENT, Envelope, key_list
from runvitals.server.ingest.errors import Refused, malformed, out_of_range
from runvitals.server.ingest.limits import Limits
from runvitals.server.ingest.metadata_records import Notes, check_depth, notes
from runvitals.server.ingest.writers import Members, joining
from runvitals.store.metadata import KeyList
from runvitals.store.metadata.metrics import MAX_KEY, MetricTable

_MOST_LISTS = 20_000
_MOST_LIST_BYTES = 32 << 20
_NULLS = (b"", b"null", b"\xc0")


@dataclass(slots=True)
class Prepared:
    """An envelope of which everything can be stored.

    `keys`: its list of keys, the texts where the list has no number yet; None: it has none.
    """

    envelope: Envelope
    raw_keys: bytes
    keys: tuple[str, ...] | KeyList | None
    columns: Columns | None
    notes: Notes | None


class Preparation:
    """Prepares envelopes; knows the lists of keys that were sent before, as the bytes they were sent as."""

    def __init__(self, metrics: MetricTable, members: Members, limits: Limits) -> None:
        self._metrics = metrics
        self._members = members
        self._limits = limits
        self._lists: dict[bytes, KeyList] = {}
        self._list_bytes = 0

    def prepared(self, envelope: Envelope, now_ms: int, room_bytes: int) -> Prepared:
        """
        Args:
            room_bytes: what its times and values may take.

        Raises:
            Refused: 400, 409, 413, 422: what is wrong, where, and what is allowed.
        """
        if self._members.find(envelope.run, envelope.writer) is None:
            joining(envelope)
            _check_labels(envelope)
        raw = b"" if envelope.keys is NOT_SENT else bytes(envelope.keys)
        keys = self._keys(envelope, raw)
        count = _count(keys)
        rows = columns(envelope, count, now_ms, self._limits, room_bytes)
        if rows is not None and rows.has_step and self._has_step(keys):
            raise out_of_range(f"keys: {STEP!r} is not allowed beside step, which is stored under that key")
        records = notes(envelope, now_ms, self._limits)
        if envelope.seq is None and (rows is not None or records is not None):
            raise malformed("seq is needed, the number that names this envelope for ever")
        return Prepared(envelope, raw, keys, rows, records)

    def keep(self, raw: bytes, schema: KeyList) -> None:
        """Know a list of keys again when the same bytes come."""
        if len(self._lists) >= _MOST_LISTS or self._list_bytes > _MOST_LIST_BYTES:
            self._lists.clear()
            self._list_bytes = 0
        self._lists[raw] = schema
        self._list_bytes += len(raw)

    def _keys(self, envelope: Envelope, raw: bytes) -> tuple[str, ...] | KeyList | None:
        known = self._lists.get(raw)
        if known is not None:
            return known
        if raw not in _NULLS:
            return _checked(key_list(raw, self._limits))
        if envelope.schema is None:
            if envelope.step is not None:
                return ()
            if envelope.t or envelope.v or envelope.body is not None:
                raise malformed("keys (or schema, the number of a list of keys) are needed")
            return None
        try:
            return self._metrics.schema_of(envelope.schema)
        except LookupError as error:
            raise Refused(409, str(error)) from None

    def _has_step(self, keys: tuple[str, ...] | KeyList | None) -> bool:
        if isinstance(keys, KeyList):
            return STEP in self._metrics.keys(keys.metric_ids).values()
        return keys is not None and STEP in keys


def _check_labels(envelope: Envelope) -> None:
    try:
        check_depth(envelope.about.labels if envelope.about is not None else None)
    except ValueError as error:
        raise out_of_range(f"about.labels: {error}") from None


def _count(keys: tuple[str, ...] | KeyList | None) -> int:
    if isinstance(keys, KeyList):
        return len(keys.metric_ids)
    return len(keys) if keys else 0


def _checked(keys: list[str]) -> tuple[str, ...]:
    for index, key in enumerate(keys):
        if not 1 <= len(key) <= MAX_KEY:
            shown = key if len(key) < 60 else f"{key[:60]}…"
            raise out_of_range(f"keys[{index}] {shown!r}: a text of 1 to {MAX_KEY} characters is allowed")
    if len(set(keys)) != len(keys):
        twice, _ = Counter(keys).most_common(1)[0]
        raise out_of_range(f"keys: {twice!r} occurs twice")
    return tuple(keys)
