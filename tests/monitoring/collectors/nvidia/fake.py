"""A fake NVML: a Python object in place of the ctypes library.

It reads its arguments and writes its answers byte by byte as `nvml.h` lays them out, so it serves any client;
`test_fake.py` asks it through NVIDIA's own binding as well. Tests set what a GPU answers, take functions
away, make calls fail or hang, and let GPUs get lost and come back.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.patience import PATIENCE_S

OK, UNINITIALIZED, INVALID, NOT_SUPPORTED, NOT_FOUND, TOO_SMALL, TIMEOUT, LOST = 0, 1, 2, 3, 6, 7, 10, 15
BLANK = 0xFFFFFFFF
BLANK_64 = 0xFFFFFFFFFFFFFFFF
MIB = 1 << 20

NvmlProcessInfo = tuple[int, int]  # PID, bytes


class FakeSlice:
    """A slice of a GPU; `uuid` begins with MIG-."""

    def __init__(
        self, gpu_instance: int, compute_instance: int, profile: str, memory: tuple[int, int]
    ) -> None:
        self.gpu_instance = gpu_instance
        self.compute_instance = compute_instance
        self.profile = profile
        self.used, self.total = memory
        self.uuid = f"MIG-5e1a-{gpu_instance}-{compute_instance}"
        self.profile_values = {2: 40.0, 10: 12.5}


class FakeGpu:
    """A busy data-centre GPU."""

    def __init__(self, number: int = 0) -> None:
        self.uuid = f"GPU-{number:08x}-1111-2222-3333-444455556666"
        self.name = "NVIDIA H100 80GB HBM3"
        self.bus = 0x18 + number
        self.lost = False
        self.utilization = (87, 43)
        self.memory: tuple[int, int, int] | None = (80 << 30, 600 * MIB, 20 << 30)  # total, reserved, used
        self.temperature = 61
        self.power_mw: int | None = 512_250
        self.limit_mw: int | None = 700_000
        self.default_limit_mw: int | None = 650_000
        self.max_sm_clock: int | None = 1980
        self.clocks = {0: 1755, 1: 1740, 2: 2619}
        self.encoder, self.decoder = 3, 4
        self.fan: int | None = None
        self.memory_errors: tuple[int, int] | None = (2, 0)
        self.clock_reasons = 0x4
        self.pcie = {
            "nvmlDeviceGetCurrPcieLinkGeneration": 5, "nvmlDeviceGetCurrPcieLinkWidth": 16,
            "nvmlDeviceGetMaxPcieLinkGeneration": 5, "nvmlDeviceGetMaxPcieLinkWidth": 16,
        }  # fmt: skip
        self.pcie_kib_per_s = {0: 1000, 1: 3000}
        # Field -> value, unsigned long long unless given otherwise.
        self.fields: dict[int, int | float] = {
            82: 74, 83: 5_000_000, 74: 3_000_000_000, 269: 0, 270: 0, 271: 0,
            94: 1, 142: 0, 143: 1, 144: 1, 145: 0, 230: 0,
        }  # fmt: skip
        self.field_kinds = {185: 1, 186: 1, 230: 1, 82: 1, 142: 1, 143: 1, 144: 1, 145: 1, 94: 1}
        self.profile_values: dict[int, float] | None = {
            2: 71.5, 3: 40.25, 5: 55.0, 7: 50.0, 10: 62.0, 11: 0.0, 12: 7.0, 13: 1.0,
            20: 12.0, 21: 24.0, 60: 100.0, 61: 200.0,
        }  # fmt: skip
        self.computing: list[NvmlProcessInfo] = []
        self.drawing: list[NvmlProcessInfo] = []
        self.shares: list[tuple[int, int, int, int, int, int]] | None = []  # PID, µs, sm, memory, enc, dec
        self.slices: list[FakeSlice | None] | None = None


class FakeNvml:
    """The library. `gpus` is the driver's list, in its order.

    `errors` makes calls fail: {"nvmlDeviceGetTemperature": 3} for all GPUs, {("nvmlDeviceGetTemperature",
    gpu): 3} for one. A function named in `absent_functions` is not in the library. While `hang` is not set,
    calls wait.
    """

    def __init__(self, gpus: list[FakeGpu]) -> None:
        self.gpus = gpus
        self.errors: dict[Any, int] = {}
        self.absent_functions: set[str] = set()
        self.calls: Counter[str] = Counter()
        self.hang = threading.Event()
        self.hang.set()
        self.is_initialized = False
        self.events: list[tuple[FakeGpu | None, int, int]] = []
        self.samples: dict[int, dict[int, float]] = {}
        self._handles: dict[int, FakeGpu | FakeSlice] = {}

    def __getattr__(self, name: str) -> Callable[..., int]:
        function = getattr(type(self), f"_{name}", None)
        if function is None or name in self.absent_functions:
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            self.calls[name] += 1
            self.hang.wait(PATIENCE_S)
            if name in self.errors:
                return self.errors[name]
            if not self.is_initialized and not name.startswith("nvmlInit"):
                return UNINITIALIZED
            code: int = function(self, name, *arguments)
            return code

        return call

    # -- the library

    def _init(self, name: str, *flags: Any) -> int:
        self.is_initialized = True
        return OK

    _nvmlInit_v2 = _nvmlInitWithFlags = _init

    def _nvmlShutdown(self, name: str) -> int:
        self.is_initialized = False
        self._handles.clear()
        return OK

    def _nvmlSystemGetDriverVersion(self, name: str, text: Any, size: Any) -> int:
        return _write(text, b"570.133.20\0")

    def _nvmlSystemGetCudaDriverVersion_v2(self, name: str, out: Any) -> int:
        return _write(out, struct.pack("=i", 12080))

    def _nvmlDeviceGetCount_v2(self, name: str, out: Any) -> int:
        return _write(out, struct.pack("=I", len(self.gpus)))

    def _nvmlDeviceGetHandleByIndex_v2(self, name: str, position: Any, out: Any) -> int:
        gpu = self.gpus[_int(position)]
        code = self._fails(name, gpu)
        return code or _write(out, struct.pack("=Q", self._handle_of(gpu)))

    # -- who a device is

    def _nvmlDeviceGetUUID(self, name: str, handle: Any, text: Any, size: Any) -> int:
        device = self._device(handle)
        return INVALID if device is None else _write(text, device.uuid.encode() + b"\0")

    def _nvmlDeviceGetName(self, name: str, handle: Any, text: Any, size: Any) -> int:
        device = self._device(handle)
        if isinstance(device, FakeSlice):
            return _write(text, f"NVIDIA H100 80GB HBM3 MIG {device.profile}\0".encode())
        return self._fails(name, device) or _write(text, device.name.encode() + b"\0")

    def _nvmlDeviceGetPciInfo_v3(self, name: str, handle: Any, out: Any) -> int:
        gpu = self._gpu(handle)
        bus_id = f"00000000:{gpu.bus:02X}:00.0".encode()
        numbers = struct.pack("=5I", 0, gpu.bus, 0, 0x233010DE, 0)
        return _write(out, bus_id[4:].ljust(16, b"\0") + numbers + bus_id.ljust(32, b"\0"))

    def _nvmlDeviceGetCudaComputeCapability(self, name: str, handle: Any, major: Any, minor: Any) -> int:
        return _write(major, struct.pack("=i", 9)) or _write(minor, struct.pack("=i", 0))

    def _nvmlDeviceGetArchitecture(self, name: str, handle: Any, out: Any) -> int:
        return _write(out, struct.pack("=I", 9))

    def _nvmlDeviceGetNumGpuCores(self, name: str, handle: Any, out: Any) -> int:
        return _write(out, struct.pack("=I", 16896))

    def _nvmlDeviceGetMinorNumber(self, name: str, handle: Any, out: Any) -> int:
        return _write(out, struct.pack("=I", self.gpus.index(self._gpu(handle))))

    # -- readings

    def _nvmlDeviceGetUtilizationRates(self, name: str, handle: Any, out: Any) -> int:
        gpu = self._gpu(handle)
        return self._fails(name, gpu) or _write(out, struct.pack("=2I", *gpu.utilization))

    def _nvmlDeviceGetMemoryInfo_v2(self, name: str, handle: Any, out: Any) -> int:
        device = self._device(handle)
        code = self._fails(name, device)
        if code:
            return code
        (version,) = struct.unpack("=I", _read(out, 4))
        if version != 0x02000028:  # nvmlMemory_v2: 40 bytes, second version
            return 25
        if isinstance(device, FakeSlice):
            total, reserved, used = device.total, 0, device.used
        elif device.memory is None:
            return NOT_SUPPORTED
        else:
            total, reserved, used = device.memory
        return _write(out, struct.pack("=I4x4Q", version, total, reserved, total - reserved - used, used))

    def _nvmlDeviceGetMemoryInfo(self, name: str, handle: Any, out: Any) -> int:
        gpu = self._gpu(handle)
        code = self._fails(name, gpu)
        if code or gpu.memory is None:
            return code or NOT_SUPPORTED
        total, reserved, used = gpu.memory
        return _write(out, struct.pack("=3Q", total, total - reserved - used, used + reserved))

    def _nvmlDeviceGetTemperature(self, name: str, handle: Any, sensor: Any, out: Any) -> int:
        return self._number(name, handle, out, lambda gpu: gpu.temperature)

    def _nvmlDeviceGetPowerUsage(self, name: str, handle: Any, out: Any) -> int:
        return self._number(name, handle, out, lambda gpu: gpu.power_mw)

    def _nvmlDeviceGetEnforcedPowerLimit(self, name: str, handle: Any, out: Any) -> int:
        return self._number(name, handle, out, lambda gpu: gpu.limit_mw)

    def _nvmlDeviceGetPowerManagementDefaultLimit(self, name: str, handle: Any, out: Any) -> int:
        return self._number(name, handle, out, lambda gpu: gpu.default_limit_mw)

    def _nvmlDeviceGetMaxClockInfo(self, name: str, handle: Any, clock: Any, out: Any) -> int:
        return self._number(name, handle, out, lambda gpu: gpu.max_sm_clock if _int(clock) == 1 else None)

    def _nvmlDeviceGetFanSpeed(self, name: str, handle: Any, out: Any) -> int:
        return self._number(name, handle, out, lambda gpu: gpu.fan)

    def _nvmlDeviceGetClockInfo(self, name: str, handle: Any, clock: Any, out: Any) -> int:
        return self._number(name, handle, out, lambda gpu: gpu.clocks.get(_int(clock)))

    def _nvmlDeviceGetPcieThroughput(self, name: str, handle: Any, direction: Any, out: Any) -> int:
        return self._number(name, handle, out, lambda gpu: gpu.pcie_kib_per_s.get(_int(direction)))

    def _link(self, name: str, handle: Any, out: Any) -> int:
        return self._number(name, handle, out, lambda gpu: gpu.pcie.get(name))

    _nvmlDeviceGetCurrPcieLinkGeneration = _nvmlDeviceGetCurrPcieLinkWidth = _link
    _nvmlDeviceGetMaxPcieLinkGeneration = _nvmlDeviceGetMaxPcieLinkWidth = _link

    def _nvmlDeviceGetEncoderUtilization(self, name: str, handle: Any, out: Any, period: Any) -> int:
        return _write(period, struct.pack("=I", 167)) or self._number(
            name, handle, out, lambda gpu: gpu.encoder
        )

    def _nvmlDeviceGetDecoderUtilization(self, name: str, handle: Any, out: Any, period: Any) -> int:
        return _write(period, struct.pack("=I", 167)) or self._number(
            name, handle, out, lambda gpu: gpu.decoder
        )

    def _nvmlDeviceGetMemoryErrorCounter(
        self, name: str, handle: Any, kind: Any, counter: Any, location: Any, out: Any
    ) -> int:
        gpu = self._gpu(handle)
        code = self._fails(name, gpu)
        if code or gpu.memory_errors is None:
            return code or NOT_SUPPORTED
        if (_int(counter), _int(location)) != (0, 2):  # since the driver was loaded, in device memory
            return INVALID
        return _write(out, struct.pack("=Q", gpu.memory_errors[_int(kind)]))

    def _nvmlDeviceGetCurrentClocksEventReasons(self, name: str, handle: Any, out: Any) -> int:
        gpu = self._gpu(handle)
        return self._fails(name, gpu) or _write(out, struct.pack("=Q", gpu.clock_reasons))

    _nvmlDeviceGetCurrentClocksThrottleReasons = _nvmlDeviceGetCurrentClocksEventReasons

    def _nvmlDeviceGetFieldValues(self, name: str, handle: Any, count: Any, values: Any) -> int:
        gpu = self._gpu(handle)
        code = self._fails(name, gpu)
        if code:
            return code
        data = bytearray(_read(values, 40 * _int(count)))
        for offset in range(0, len(data), 40):
            field, scope = struct.unpack_from("=2I", data, offset)
            code = self.errors.get((name, field), OK if field in gpu.fields else NOT_SUPPORTED)
            kind = gpu.field_kinds.get(field, 3)
            raw = (
                b""
                if code
                else struct.pack(("=d", "=I", "=Q", "=Q", "=q", "=i", "=H")[kind], gpu.fields[field])
            )
            struct.pack_into("=2I2q2I8s", data, offset, field, scope, 1_700_000_000, 5, kind, code, raw)
        return _write(values, bytes(data))

    # -- processes

    def _compute(self, name: str, handle: Any, count: Any, processes: Any) -> int:
        return self._list(name, handle, count, processes, lambda gpu: gpu.computing)

    def _graphics(self, name: str, handle: Any, count: Any, processes: Any) -> int:
        return self._list(name, handle, count, processes, lambda gpu: gpu.drawing)

    _nvmlDeviceGetComputeRunningProcesses_v3 = _nvmlDeviceGetComputeRunningProcesses_v2 = _compute
    _nvmlDeviceGetGraphicsRunningProcesses_v3 = _graphics

    def _list(
        self,
        name: str,
        handle: Any,
        count: Any,
        processes: Any,
        of: Callable[[FakeGpu], list[NvmlProcessInfo]],
    ) -> int:
        gpu = self._gpu(handle)
        code = self._fails(name, gpu)
        if code:
            return code
        entries = of(gpu)
        (room,) = struct.unpack("=I", _read(count, 4))
        _write(count, struct.pack("=I", len(entries)))
        if room < len(entries):
            return TOO_SMALL
        data = b"".join(struct.pack("=I4xQ2I", pid, used, BLANK, BLANK) for pid, used in entries)
        return _write(processes, data) if data else OK

    def _nvmlDeviceGetProcessUtilization(
        self, name: str, handle: Any, samples: Any, count: Any, since: Any
    ) -> int:
        gpu = self._gpu(handle)
        code = self._fails(name, gpu)
        if code or gpu.shares is None:
            return code or NOT_SUPPORTED
        shares = [share for share in gpu.shares if share[1] > _int(since)]
        (room,) = struct.unpack("=I", _read(count, 4))
        _write(count, struct.pack("=I", len(shares)))
        if not shares:
            return NOT_FOUND
        if room < len(shares) or samples is None:
            return TOO_SMALL
        return _write(samples, b"".join(struct.pack("=I4xQ4I", *share) for share in shares))

    # -- profiling counters

    def _nvmlGpmQueryDeviceSupport(self, name: str, handle: Any, out: Any) -> int:
        has = self._gpu(handle).profile_values is not None
        return _write(out, struct.pack("=2I", 1, has))

    def _nvmlGpmSampleAlloc(self, name: str, out: Any) -> int:
        sample = 0x7000 + len(self.samples)
        self.samples[sample] = {}
        return _write(out, struct.pack("=Q", sample))

    def _nvmlGpmSampleFree(self, name: str, sample: Any) -> int:
        return OK if self.samples.pop(_address(sample), None) is not None else INVALID

    def _nvmlGpmSampleGet(self, name: str, handle: Any, sample: Any) -> int:
        gpu = self._gpu(handle)
        code = self._fails(name, gpu)
        if not code:
            self.samples[_address(sample)] = dict(gpu.profile_values or {})
        return code

    def _nvmlGpmMigSampleGet(self, name: str, handle: Any, instance: Any, sample: Any) -> int:
        gpu = self._gpu(handle)
        for slice in gpu.slices or []:
            if slice is not None and slice.gpu_instance == _int(instance):
                self.samples[_address(sample)] = dict(slice.profile_values)
                return OK
        return NOT_FOUND

    def _nvmlGpmMetricsGet(self, name: str, question: Any) -> int:
        data = bytearray(_read(question, 24))
        version, count, older, newer = struct.unpack("=2I2Q", data)
        if version != 1 or older not in self.samples or older == newer:
            return INVALID
        if not self.samples[older]:
            return INVALID  # never filled
        values = self.samples[newer]
        entries = bytearray(_read(question, 24 + 40 * count))
        for offset in range(24, len(entries), 40):
            (number,) = struct.unpack_from("=I", entries, offset)
            code = OK if number in values else NOT_SUPPORTED
            struct.pack_into("=IId", entries, offset, number, code, values.get(number, 0.0))
        return _write(question, bytes(entries))

    # -- slices

    def _nvmlDeviceGetMigMode(self, name: str, handle: Any, current: Any, pending: Any) -> int:
        gpu = self._gpu(handle)
        mode = struct.pack("=I", gpu.slices is not None)
        return _write(current, mode) or _write(pending, mode)

    def _nvmlDeviceGetMaxMigDeviceCount(self, name: str, handle: Any, out: Any) -> int:
        return _write(out, struct.pack("=I", len(self._gpu(handle).slices or [])))

    def _nvmlDeviceGetMigDeviceHandleByIndex(self, name: str, handle: Any, position: Any, out: Any) -> int:
        slice = (self._gpu(handle).slices or [])[_int(position)]
        if slice is None:
            return NOT_FOUND
        return self._fails(name, slice) or _write(out, struct.pack("=Q", self._handle_of(slice)))

    def _nvmlDeviceGetGpuInstanceId(self, name: str, handle: Any, out: Any) -> int:
        return _write(out, struct.pack("=I", self._slice(handle).gpu_instance))

    def _nvmlDeviceGetComputeInstanceId(self, name: str, handle: Any, out: Any) -> int:
        return _write(out, struct.pack("=I", self._slice(handle).compute_instance))

    def _nvmlDeviceGetAttributes_v2(self, name: str, handle: Any, out: Any) -> int:
        return _write(out, struct.pack("=8IQ", 16, 1, 1, 0, 1, 0, 1, 1, self._slice(handle).total // MIB))

    # -- events

    def _nvmlEventSetCreate(self, name: str, out: Any) -> int:
        return _write(out, struct.pack("=Q", 0x5000))

    def _nvmlEventSetFree(self, name: str, set: Any) -> int:
        return OK

    def _nvmlDeviceRegisterEvents(self, name: str, handle: Any, kinds: Any, set: Any) -> int:
        # A driver older than the newer event types.
        return NOT_SUPPORTED if _int(kinds) & 0x8000 else OK

    def _nvmlEventSetWait_v2(self, name: str, set: Any, out: Any, timeout_ms: Any) -> int:
        if not self.events:
            return TIMEOUT
        gpu, kind, data = self.events.pop(0)
        handle = 0 if gpu is None else self._handle_of(gpu)
        return _write(out, struct.pack("=3Q2I", handle, kind, data, BLANK, BLANK))

    # -- helpers

    def _number(self, name: str, handle: Any, out: Any, of: Callable[[FakeGpu], int | None]) -> int:
        gpu = self._gpu(handle)
        value = of(gpu)
        code = self._fails(name, gpu) or (NOT_SUPPORTED if value is None else OK)
        return code or _write(out, struct.pack("=I", value))

    def _fails(self, name: str, device: Any) -> int:
        if getattr(device, "lost", False):
            return LOST
        return self.errors.get((name, device), OK)

    def _handle_of(self, device: FakeGpu | FakeSlice) -> int:
        for handle, device_of_handle in self._handles.items():
            if device_of_handle is device:
                return handle
        handle = 0x1000 + len(self._handles)
        self._handles[handle] = device
        return handle

    def _device(self, handle: Any) -> Any:
        return self._handles[_address(handle)]

    def _gpu(self, handle: Any) -> FakeGpu:
        device = self._device(handle)
        assert isinstance(device, FakeGpu)
        return device

    def _slice(self, handle: Any) -> FakeSlice:
        device = self._device(handle)
        assert isinstance(device, FakeSlice)
        return device


def _int(argument: Any) -> int:
    return int(getattr(argument, "value", argument))


def _address(pointer: Any) -> int:
    return ctypes.cast(pointer, ctypes.c_void_p).value or 0


def _place(argument: Any) -> int:
    return ctypes.addressof(getattr(argument, "_obj", argument))


def _read(argument: Any, size: int) -> bytes:
    return ctypes.string_at(_place(argument), size)


def _write(argument: Any, data: bytes) -> int:
    ctypes.memmove(_place(argument), data, len(data))
    return OK
