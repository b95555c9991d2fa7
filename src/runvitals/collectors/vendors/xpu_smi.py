"""`xpu-smi dump`, Intel's tool, as it goes on printing a line for each card every second."""

from __future__ import annotations

from runvitals.collectors.tool import Stream, ToolFailed
from runvitals.collectors.vendors.adapter import POWER, SHARE, USED, Device, Reading, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from runvitals.collectors.base import Tick

# Load, power, clock, temperature of core and memory, memory used in per cent and in MiB.
METRICS = "0,1,2,3,4,5,18"
READINGS = (
    Reading("gpu", "%", "GPU Utilization (%)"),
    Reading(POWER, "W", "GPU Power (W)"),
    Reading("graphicsClock", "MHz", "GPU Frequency (MHz)"),
    Reading("temp", "°C", "GPU Core Temperature (Celsius Degree)"),
    Reading("memoryTemp", "°C", "GPU Memory Temperature (Celsius Degree)"),
    Reading(SHARE, "%", "GPU Memory Utilization (%)"),
    Reading(USED, "bytes", "GPU Memory Used (MiB)", bare="MiB"),
)
# Lines of something else, before we say that it is not Intel's tool.
PATIENCE_LINES = 20


class XpuSmi:
    """The readings of `READINGS`; rates are "N/A" in the first line, and cells blank without permission.

    Args:
        path: where the tool lies.
        numbers: indices in keys ``gpu.{i}.…`` of its devices 0, 1, 2 …
    """

    name = "xpu-smi"

    def __init__(self, path: str, numbers: Sequence[int]) -> None:
        self.absent: dict[str, str] = {}
        self._stream = Stream([path, "dump", "-d", "-1", "-m", METRICS, "-i", "1"])
        self._path = path
        self._numbers = numbers
        self._header: list[str] = []
        self._others = 0

    def sample(self, tick: Tick) -> None:
        """Write each card's newest line.

        Raises:
            ToolFailed: it ended, or prints something else.
        """
        newest: dict[int, Device] = {}
        try:
            lines = self._stream.lines(tick.mono_s)
        except ToolFailed:
            self._header = []  # the next one prints its own
            raise
        for line in lines:
            device = self._device([cell.strip() for cell in line.decode("utf-8", "replace").split(",")])
            if device is not None:
                newest[device.index] = device
        write(tick, newest.values(), 0)
        if self._others > PATIENCE_LINES and not self._header:
            self._others = 0
            raise ToolFailed(f"{self._path} prints no table of Intel's GPUs: it is another vendor's xpu-smi")

    def close(self) -> None:
        self._stream.close()

    def _device(self, cells: list[str]) -> Device | None:
        if "DeviceId" in cells:
            self._header = cells
            return None
        row: dict[str, object] = dict(zip(self._header, cells, strict=False))
        number = str(row.get("DeviceId", ""))
        if not number.isdigit() or int(number) >= len(self._numbers):
            self._others += 1
            return None
        device = Device(self._numbers[int(number)], {})
        for reading in READINGS:
            value = reading.of(row)
            if value is not None:
                device.gauges[reading.key] = value
        return device
