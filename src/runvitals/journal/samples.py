"""Samples: the values of a fixed list of keys at one time, packed.

Payload of a SAMPLE frame::

    offset  size  field
    0       4     schema id, unsigned, little-endian
    4       4     zero
    8       8     time, milliseconds since 1970-01-01 UTC, signed, little-endian
    16      8·n   n float64, little-endian, in the order of the schema's keys; NaN = no value

A schema is a SCHEMA frame, JSON `{"id": 0, "keys": ["cpu", …]}`, in the same file before its first use.
"""

from __future__ import annotations

from struct import Struct

from runvitals.base.json_codec import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAN = float("nan")
SAMPLE_HEAD = Struct("<IIq")
_HEAD_SIZE = SAMPLE_HEAD.size
# The set of keys changes: a device is lost, a slow source skips a tick. Each set seen gets its own schema, so
# a missing value takes no space. After this many, further sets share one wide schema with NaN for missing
# values, so that flapping keys cannot create schemas without end.
MAX_EXACT_SCHEMAS = 64
# The limit for sets of a single key. If a program reports its values one by one, the wide schema would grow
# with every key, and every value would take the space of all of them.
MAX_SINGLE_SCHEMAS = 16_384


class Packer:
    """Packs dictionaries of values into sample payloads, and declares schemas as needed.

    Attributes:
        declared: schema id → keys, of every schema that later samples may use.
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
        """Returns (payload of a SCHEMA record to write first, or None; payload of the sample)."""
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
        """Return the payload of a declared schema's SCHEMA frame."""
        return dumps({"id": schema_id, "keys": list(self.declared[schema_id])})


def split(payload: bytes, schemas: Mapping[int, Sequence[str]]) -> tuple[int, Sequence[str], bytes]:
    """Split a sample payload into (time in ms, keys, packed values).

    Raises:
        ValueError: its schema was not declared, or its size does not match the schema.
    """
    size = len(payload)
    if size < _HEAD_SIZE:
        raise ValueError(f"sample of {size} bytes; expected at least {_HEAD_SIZE}")
    schema_id, _, time_ms = SAMPLE_HEAD.unpack_from(payload)
    keys = schemas.get(schema_id)
    if keys is None:
        raise ValueError(f"sample uses schema {schema_id}, which was not declared before it")
    if size != _HEAD_SIZE + 8 * len(keys):
        raise ValueError(f"sample of {size} bytes does not match schema {schema_id} with {len(keys)} keys")
    return time_ms, keys, payload[_HEAD_SIZE:]


def unpack_row(packed: bytes) -> tuple[float, ...]:
    """Unpack little-endian float64 values."""
    count = len(packed) // 8
    row = _ROWS.get(count)
    if row is None:
        if len(_ROWS) >= 1000:
            _ROWS.clear()
        row = _ROWS[count] = Struct(f"<{count}d")
    return row.unpack(packed)


_ROWS: dict[int, Struct] = {}
