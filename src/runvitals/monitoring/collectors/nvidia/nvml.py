"""NVML, the driver's library, called through ctypes.

The usual binding (`nvidia-ml-py`) declares a thousand functions and structures: importing it costs 140 ms and
5.7 MB. ctypes and the thirty functions used here cost 4 ms and 0.7 MB, and need no package.
"""

from __future__ import annotations

import ctypes
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# NVML return codes. Of all others only the text is used.
UNINITIALIZED = 1
INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
INSUFFICIENT_SIZE = 7
DRIVER_NOT_LOADED = 9
TIMEOUT = 10
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
RESET_REQUIRED = 16
LIBRARY_MISMATCH = 18
GPU_NOT_FOUND = 28
UNKNOWN = 999

TEXTS = {
    UNINITIALIZED: "NVML is not initialized",
    INVALID_ARGUMENT: "invalid argument",
    NOT_SUPPORTED: "not supported by the device or its driver",
    NO_PERMISSION: "no permission",
    NOT_FOUND: "not found",
    INSUFFICIENT_SIZE: "the result is larger than the buffer",
    DRIVER_NOT_LOADED: "the NVIDIA driver is not loaded",
    TIMEOUT: "the driver did not answer in time",
    FUNCTION_NOT_FOUND: "the driver is too old for this function",
    GPU_IS_LOST: "the GPU has fallen off the bus",
    RESET_REQUIRED: "the GPU needs a reset",
    17: "the operating system has blocked the request",
    LIBRARY_MISMATCH: "library and kernel module versions differ: reboot, or reload the module",
    20: "out of memory",
    21: "no data yet",
    25: "the driver does not support this version of the argument",
    GPU_NOT_FOUND: "no such GPU",
    UNKNOWN: "unknown error (in a container: it has lost its devices; restart it)",
}  # fmt: skip

# NVML's values for "no value".
BLANK_UINT = 0xFFFFFFFF
BLANK_ULONG = 0xFFFFFFFFFFFFFFFF

_PATHS = (
    "libnvidia-ml.so.1",
    "/usr/lib/wsl/lib/libnvidia-ml.so.1",
    "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
    "/usr/lib64-nvidia/libnvidia-ml.so.1",
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
    "/run/nvidia/driver/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1",
    "/run/opengl-driver/lib/libnvidia-ml.so.1",
)


class NvmlError(Exception):
    """An NVML call failed.

    Args:
        code: the return code.
        function: the function's name.
    """

    def __init__(self, code: int, function: str) -> None:
        super().__init__(f"{TEXTS.get(code, f'NVML error {code}')} ({function})")
        self.code = code

    @property
    def reason(self) -> str:
        """The error text, without the function's name."""
        return TEXTS.get(self.code, f"NVML error {self.code}")


def load() -> ctypes.CDLL:
    """Load the driver's library.

    Raises:
        OSError: it cannot be found or loaded; the text is that of the dynamic linker.
    """
    if sys.platform == "win32":
        from runvitals.monitoring.collectors.nvidia.locations import windows_library

        return ctypes.CDLL(windows_library() or "nvml.dll")
    first: OSError | None = None
    for path in _PATHS:
        try:
            return ctypes.CDLL(path)
        except OSError as error:
            first = first or error
    assert first is not None
    raise first


class Nvml:
    """Calls NVML's functions and turns return codes into exceptions.

    All calls share the buffers for results: use an instance in one thread at a time.

    Args:
        library: an object with the functions as attributes, such as a ctypes library.

    Example:
        >>> nvml = Nvml(load())
        >>> nvml.call("nvmlInit_v2")
        >>> nvml.uint("nvmlDeviceGetCount_v2")
        8
    """

    __slots__ = ("_functions", "_library", "_text", "_uint", "_uint_ref", "_ulong", "_ulong_ref")

    def __init__(self, library: Any) -> None:
        self._library = library
        self._functions: dict[str, Callable[..., int]] = {}
        self._uint = ctypes.c_uint()
        self._uint_ref = ctypes.byref(self._uint)
        self._ulong = ctypes.c_ulonglong()
        self._ulong_ref = ctypes.byref(self._ulong)
        self._text = ctypes.create_string_buffer(128)

    def code(self, function: str, *arguments: Any) -> int:
        """Call, and return the return code; FUNCTION_NOT_FOUND if the library lacks the function."""
        symbol = self._functions.get(function)
        if symbol is None:
            try:
                symbol = getattr(self._library, function)
            except AttributeError:
                return FUNCTION_NOT_FOUND
            self._functions[function] = symbol
        return symbol(*arguments)

    def call(self, function: str, *arguments: Any) -> None:
        """Call a function; raise NvmlError for every return code except success."""
        code = self.code(function, *arguments)
        if code:
            raise NvmlError(code, function)

    def uint(self, function: str, *arguments: Any) -> int:
        """Return the number that a function writes through its last argument, an `unsigned int *`."""
        self.call(function, *arguments, self._uint_ref)
        value = self._uint.value
        if value == BLANK_UINT:
            raise NvmlError(NOT_SUPPORTED, function)
        return value

    def ulong(self, function: str, *arguments: Any) -> int:
        """Return the number that a function writes through its last argument, an `unsigned long long *`."""
        self.call(function, *arguments, self._ulong_ref)
        value = self._ulong.value
        if value == BLANK_ULONG:
            raise NvmlError(NOT_SUPPORTED, function)
        return value

    def text(self, function: str, *arguments: Any) -> str:
        """Return the text that a function writes into a buffer given with its size."""
        self.call(function, *arguments, self._text, ctypes.c_uint(128))
        return self._text.value.decode("utf-8", "replace")

    def first(self, functions: tuple[str, ...], *arguments: Any) -> None:
        """Call the first version of a function that the library has."""
        for function in functions:
            code = self.code(function, *arguments)
            if code == 0:
                return
            if code != FUNCTION_NOT_FOUND:
                raise NvmlError(code, function)
        raise NvmlError(FUNCTION_NOT_FOUND, functions[0])
