"""Samples: one moment's values of a fixed list of keys, packed.

Payload of a SAMPLE frame::

    offset  size  what
    0       4     schema id, unsigned, little-endian
    4       4     zero
    8       8     time, milliseconds since 1970-01-01 UTC, signed, little-endian
    16      8·n   n float64, little-endian, in the order of the schema's keys; NaN = no value

A schema is a SCHEMA frame, JSON `{"id": 0, "keys": ["cpu", …]}`, in the same file before its first use.
"""

from __future__ import annotations

from struct import Struct

from runvitals.journal.json_codec import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAN = float("nan")
SAMPLE_HEAD = Struct("<IIq")
_HEAD_SIZE = SAMPLE_HEAD.size
# Readings come and go (a device is lost, a slow source skips a tick). Each set of keys seen is a schema of
# its own, so that "not read" costs nothing; past this many, a set joins one wide schema and its gaps are NaN,
# so that flapping keys cannot multiply schemas.
MAX_EXACT_SCHEMAS = 64
# But for single keys: of a program that tells its readings one by one, each new one would make the wide
# schema longer, and each value would be written as long as all of them.
MAX_SINGLE_SCHEMAS = 16_384


class Packer:
    """Turns dictionaries of readings into sample payloads, declaring schemas as they appear.

    Attributes:
        declared: the keys of every schema that samples to come may use, by its id.
    """

    __slots__ = ("_ids", "_next_id", "_structs", "_wide", "_wide_id", "declared")

    def __init__(self) -> None:
        self._ids: dict[tuple[str, ...], int] = {}
        self._structs: dict[int, Struct] = {}
        self._wide: dict[str, None] = {}
        self._wide_id = -1
        self._next_id = 0
        self.declared: dict[int, tuple[str, ...]] = {}

    def pack(self, time_ms: int, values: Mapping[str, float]) -> tuple[bytes | None, bytes]:
        """(schema payload to write first, or None; sample payload)."""
        keys = tuple(values)
        schema_id = self._ids.get(keys)
        if schema_id is not None:
            return None, self._structs[schema_id].pack(schema_id, 0, time_ms, *values.values())
        most = MAX_SINGLE_SCHEMAS if len(keys) == 1 else MAX_EXACT_SCHEMAS
        if len(self._ids) < most:
            schema_id = self._ids[keys] = self._declare(keys)
            return self.schema(schema_id), self._structs[schema_id].pack(
                schema_id, 0, time_ms, *values.values()
            )
        return self._pack_wide(time_ms, values)

    def _pack_wide(self, time_ms: int, values: Mapping[str, float]) -> tuple[bytes | None, bytes]:
        schema: bytes | None = None
        if not self._wide.keys() >= values.keys():
            self._wide.update(dict.fromkeys(values))
            self.declared.pop(self._wide_id, None)
            self._structs.pop(self._wide_id, None)
            self._wide_id = self._declare(tuple(self._wide))
            schema = self.schema(self._wide_id)
        row = (values.get(key, NAN) for key in self._wide)
        return schema, self._structs[self._wide_id].pack(self._wide_id, 0, time_ms, *row)

    def _declare(self, keys: tuple[str, ...]) -> int:
        schema_id = self._next_id
        self._next_id += 1
        self.declared[schema_id] = keys
        self._structs[schema_id] = Struct(f"<IIq{len(keys)}d")
        return schema_id

    def schema(self, schema_id: int) -> bytes:
        """The payload of a declared schema's SCHEMA frame."""
        return dumps({"id": schema_id, "keys": list(self.declared[schema_id])})


def split(payload: bytes, schemas: Mapping[int, Sequence[str]]) -> tuple[int, Sequence[str], bytes]:
    """(time in ms, keys, values still packed) of a sample payload.

    Raises:
        ValueError: a schema that was not declared, or a length that does not fit it.
    """
    size = len(payload)
    if size < _HEAD_SIZE:
        raise ValueError(f"a sample has at least {_HEAD_SIZE} bytes; this one has {size}")
    schema_id, _, time_ms = SAMPLE_HEAD.unpack_from(payload)
    keys = schemas.get(schema_id)
    if keys is None:
        raise ValueError(f"sample of schema {schema_id}, which was not declared before it")
    if size != _HEAD_SIZE + 8 * len(keys):
        raise ValueError(f"sample of {size} bytes does not fit schema {schema_id} with {len(keys)} keys")
    return time_ms, keys, payload[_HEAD_SIZE:]


def unpack_row(packed: bytes) -> tuple[float, ...]:
    """The numbers in a row of float64, little-endian."""
    count = len(packed) // 8
    row = _ROWS.get(count)
    if row is None:
        if len(_ROWS) >= 1000:
            _ROWS.clear()
        row = _ROWS[count] = Struct(f"<{count}d")
    return row.unpack(packed)


_ROWS: dict[int, Struct] = {}
