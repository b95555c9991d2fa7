"""NVML's field values: many readings of a device in one call."""

from __future__ import annotations

import ctypes
from struct import Struct

from runvitals.monitoring.collectors.nvidia.nvml import (
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    INVALID_ARGUMENT,
    NO_PERMISSION,
    NOT_FOUND,
    NOT_SUPPORTED,
    TEXTS,
    NvmlError,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from runvitals.monitoring.collectors.nvidia.nvml import Nvml

# nvmlFieldValue_t: field, scope, timestamp µs, latency µs, value type, return code, value.
_FIELD = Struct("=IIqqIi8s")
# nvmlValueType_t: the type of the eight bytes of a value.
_ULONG = "=I" if ctypes.sizeof(ctypes.c_ulong) == 4 else "=Q"
_TYPES = tuple(Struct(code) for code in ("=d", "=I", _ULONG, "=Q", "=q", "=i", "=H"))
_BLANKS = frozenset((0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 0x7FFFFFFFFFFFFFF0, 0x7FFFFFFFFFFFFFF2))
ALL_LINKS = 0xFFFFFFFF
# Codes of fields that this generation of devices or drivers lacks.
_FOR_GOOD = frozenset((NOT_SUPPORTED, INVALID_ARGUMENT, NO_PERMISSION, NOT_FOUND, FUNCTION_NOT_FOUND))
NO_VALUE = "the driver reports no value"
# Such fields are retried after this time: the driver may be updated during a long run.
AGAIN_S = 300.0


class FieldValues:
    """A set of fields of one device. Fields that the device lacks are left out of the calls for AGAIN_S.

    Args:
        fields: (field, scope) pairs; the scope is 0, a link number, or ALL_LINKS.

    Example:
        >>> FieldValues([(83, 0), (82, 0)]).read(nvml, handle, mono_s)
        {83: 129931554972, 82: 54}
    """

    __slots__ = ("_buffer", "_count", "_pairs", "_retry_at_s", "missing")

    def __init__(self, fields: Iterable[tuple[int, int]]) -> None:
        self._pairs = tuple(fields)
        self._count = 0
        self._buffer = ctypes.create_string_buffer(0)
        self._retry_at_s = float("-inf")
        # Field -> return code, of the missing ones; 0: its value is "no value".
        self.missing: dict[int, int] = {}

    def explain(self, keys: Iterable[tuple[str, tuple[int, ...]]]) -> dict[str, str]:
        """Key -> why none of its fields has a value.

        Args:
            keys: the fields of each key, the usual one first.
        """
        missing = self.missing
        return {
            key: TEXTS.get(missing[fields[0]], NO_VALUE)
            for key, fields in keys
            if all(field in missing for field in fields)
        }

    def read(self, nvml: Nvml, handle: object, mono_s: float) -> dict[int, float]:
        """Field -> value. Fields without a value are left out.

        Raises:
            NvmlError: the call as a whole failed.
        """
        if mono_s >= self._retry_at_s:
            self._retry_at_s = mono_s + AGAIN_S
            self.missing = {}
            self._request()
        elif not self._count:
            return {}
        nvml.call("nvmlDeviceGetFieldValues", handle, ctypes.c_int(self._count), self._buffer)
        values: dict[int, float] = {}
        is_less = False
        for field, _, _, _, kind, code, raw in _FIELD.iter_unpack(self._buffer.raw):
            if code == GPU_IS_LOST:
                raise NvmlError(code, "nvmlDeviceGetFieldValues")
            if code == 0 and kind < len(_TYPES):
                (value,) = _TYPES[kind].unpack_from(raw)
                if value not in _BLANKS:
                    values[field] = value
                    continue
            self.missing[field] = code
            is_less = is_less or code in _FOR_GOOD
        if is_less:
            self._request()
        elif self.missing:
            for field in values:
                self.missing.pop(field, None)
        return values

    def _request(self) -> None:
        """Prepare the call for the fields that the device does not lack."""
        pairs = [pair for pair in self._pairs if self.missing.get(pair[0]) not in _FOR_GOOD]
        data = b"".join(_FIELD.pack(field, scope, 0, 0, 0, 0, b"") for field, scope in pairs)
        self._count = len(data) // _FIELD.size
        self._buffer = ctypes.create_string_buffer(data, len(data))
