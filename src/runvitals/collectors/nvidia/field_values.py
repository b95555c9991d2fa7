"""Many readings of a device in one call: NVML's field values."""

from __future__ import annotations

import ctypes
from struct import Struct

from runvitals.collectors.nvidia.nvml import (
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    INVALID_ARGUMENT,
    NO_PERMISSION,
    NOT_FOUND,
    NOT_SUPPORTED,
    NvmlError,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from runvitals.collectors.nvidia.nvml import Nvml

# nvmlFieldValue_t: field, scope, timestamp µs, latency µs, type of the value, return code, value.
_FIELD = Struct("=IIqqIi8s")
# nvmlValueType_t: how the eight bytes of a value are to be read.
_ULONG = "=I" if ctypes.sizeof(ctypes.c_ulong) == 4 else "=Q"
_TYPES = tuple(Struct(code) for code in ("=d", "=I", _ULONG, "=Q", "=q", "=i", "=H"))
_BLANKS = frozenset((0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 0x7FFFFFFFFFFFFFF0, 0x7FFFFFFFFFFFFFF2))
ALL_LINKS = 0xFFFFFFFF
# What a field of another generation of devices or drivers answers, at each call.
_FOR_GOOD = frozenset((NOT_SUPPORTED, INVALID_ARGUMENT, NO_PERMISSION, NOT_FOUND, FUNCTION_NOT_FOUND))
# Such a field is asked for again this much later: a driver can be changed under a long run.
AGAIN_S = 300.0


class FieldValues:
    """A set of fields of one device; those that the device lacks are not asked for again for a while.

    Args:
        wanted: (field, scope) pairs; the scope is 0, or a link's number, or ALL_LINKS.

    Example:
        >>> FieldValues([(83, 0), (82, 0)]).read(nvml, handle, mono_s)
        {83: 129931554972, 82: 54}
    """

    __slots__ = ("_asked", "_buffer", "_retry_at_s", "_wanted", "missing")

    def __init__(self, wanted: Iterable[tuple[int, int]]) -> None:
        self._wanted = tuple(wanted)
        self._asked = 0
        self._buffer = ctypes.create_string_buffer(0)
        self._retry_at_s = float("-inf")
        # Return code by field, of those that are not there.
        self.missing: dict[int, int] = {}

    def read(self, nvml: Nvml, handle: object, mono_s: float) -> dict[int, float]:
        """Value by field.

        Raises:
            NvmlError: of the call as a whole; a field without a value is only left out.
        """
        if mono_s >= self._retry_at_s:
            self._retry_at_s = mono_s + AGAIN_S
            self._ask_for(self._wanted)
        elif not self._asked:
            return {}
        nvml.call("nvmlDeviceGetFieldValues", handle, ctypes.c_int(self._asked), self._buffer)
        values: dict[int, float] = {}
        missing: dict[int, int] = {}
        for field, _, _, _, kind, code, raw in _FIELD.iter_unpack(self._buffer.raw):
            if code == 0 and kind < len(_TYPES):
                (value,) = _TYPES[kind].unpack_from(raw)
                if value not in _BLANKS:
                    values[field] = value
            elif code == GPU_IS_LOST:
                raise NvmlError(code, "nvmlDeviceGetFieldValues")
            elif code in _FOR_GOOD:
                missing[field] = code
        if missing:
            self.missing = {**self.missing, **missing}
            self._ask_for([pair for pair in self._wanted if pair[0] not in self.missing])
        return values

    def _ask_for(self, pairs: Iterable[tuple[int, int]]) -> None:
        data = b"".join(_FIELD.pack(field, scope, 0, 0, 0, 0, b"") for field, scope in pairs)
        if len(data) == len(self._wanted) * _FIELD.size:
            self.missing = {}
        self._asked = len(data) // _FIELD.size
        self._buffer = ctypes.create_string_buffer(data, len(data))
