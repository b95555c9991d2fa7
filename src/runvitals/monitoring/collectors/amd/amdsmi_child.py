"""Reads AMD's library `amdsmi` in a child process, and prints a line of JSON for each sample.

The library takes 25 MB. Its first call may hang on a broken driver, and it may crash its process. So the
monitor runs this file as a child and reads its output::

    python -I -S -E amdsmi_child.py SECONDS FOLDER…

FOLDER… are added to sys.path. Each line is ``{"gpus": [{"index", "pci", "uuid", "readings": {…}}]}``. After a
line ``{"error": "…"}`` it exits. It also exits when the reader closes the pipe.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

MIB = 1 << 20


def number(value: object) -> float | None:
    """Return a number from the library. "N/A" and fields with all bits set are None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return None if value in (0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF) else float(value)


def first(output: Any, *names: str) -> float | None:
    """Return the first usable value of several fields, whose names vary between versions."""
    if not isinstance(output, dict):
        return number(output)
    numbers = [number(output.get(name)) for name in names]
    return next((value for value in numbers if value is not None), None)


class AmdsmiLibrary:
    """Calls the library. What a version or card does not support is left out."""

    def __init__(self, amdsmi: Any) -> None:
        self.amdsmi = amdsmi

    def ask(self, function: str, *arguments: object) -> Any:
        """Call a function of the library; None if it fails."""
        try:
            return getattr(self.amdsmi, function)(*arguments)
        except (self.amdsmi.AmdSmiException, AttributeError, TypeError, ValueError, KeyError):
            return None

    def constant(self, group: str, *names: str) -> Any:
        """Find a constant of the library by one of its names; None if it has none of them."""
        values = [getattr(getattr(self.amdsmi, group, None), name, None) for name in names]
        return next((value for value in values if value is not None), None)

    def gpus(self) -> list[dict[str, Any]]:
        """List the cards: identity, limits and readings."""
        handles = self.amdsmi.amdsmi_get_processor_handles()
        return [
            {
                "index": index,
                "pci": str(self.ask("amdsmi_get_gpu_device_bdf", handle) or ""),
                "uuid": str(self.ask("amdsmi_get_gpu_device_uuid", handle) or ""),
                "readings": self.readings(handle),
            }
            for index, handle in enumerate(handles)
        ]

    def readings(self, handle: object) -> dict[str, float]:
        """Read a card."""
        ask = self.ask
        activity = ask("amdsmi_get_gpu_activity", handle)
        power = ask("amdsmi_get_power_info", handle)
        memory = ask("amdsmi_get_gpu_vram_usage", handle)
        errors = ask("amdsmi_get_gpu_total_ecc_count", handle)
        values = {
            "gpu": first(activity, "gfx_activity"),
            "memory": first(activity, "umc_activity"),
            # Which of the two has a value depends on the generation; the other is "N/A".
            "powerWatts": first(power, "socket_power", "current_socket_power", "average_socket_power"),
            "enforcedPowerLimitWatts": self.limit(handle),
            "ubbPowerWatts": first(power, "ubb_power"),
            "energyJoules": self.energy(handle),
            "edgeTemp": self.temperature(handle, "EDGE"),
            "junctionTemp": self.temperature(handle, "HOTSPOT", "JUNCTION"),
            "memoryTemp": self.temperature(handle, "VRAM"),
            "graphicsClock": self.clock(handle, "GFX"),
            "memoryClock": self.clock(handle, "MEM"),
            "correctedMemoryErrors": first(errors, "correctable_count"),
            "unCorrectedMemoryErrors": first(errors, "uncorrectable_count"),
        }
        used, total = first(memory, "vram_used"), first(memory, "vram_total")
        if used is not None and total is not None:
            values["memoryAllocatedBytes"], values["memoryTotalBytes"] = used * MIB, total * MIB
        return {name: value for name, value in values.items() if value is not None}

    def limit(self, handle: object) -> float | None:
        """Read the power limit in W."""
        cap = first(self.ask("amdsmi_get_power_cap_info", handle), "power_cap")
        # Microwatts; watts in early versions.
        return cap / 1e6 if cap is not None and cap > 10_000 else cap

    def energy(self, handle: object) -> float | None:
        """Read the energy counter in J."""
        count = self.ask("amdsmi_get_energy_count", handle)
        steps = first(count, "energy_accumulator", "power") if isinstance(count, dict) else None
        resolution = first(count, "counter_resolution") if isinstance(count, dict) else None
        # The accumulator's resolution in microjoules, which varies between chips.
        return None if steps is None or resolution is None else steps * resolution / 1e6

    def temperature(self, handle: object, *sensors: str) -> float | None:
        """Read the first of these sensors that the card has, in °C."""
        sensor = self.constant("AmdSmiTemperatureType", *sensors)
        current = self.constant("AmdSmiTemperatureMetric", "CURRENT")
        return None if sensor is None else number(self.ask("amdsmi_get_temp_metric", handle, sensor, current))

    def clock(self, handle: object, domain: str) -> float | None:
        """Read the clock of a domain in MHz."""
        kind = self.constant("AmdSmiClkType", domain)
        return (
            None if kind is None else first(self.ask("amdsmi_get_clock_info", handle, kind), "clk", "cur_clk")
        )


def print_line(report: dict[str, Any]) -> None:
    """Write a line directly: nothing stays in a buffer that could not be flushed at exit."""
    os.write(1, json.dumps(report).encode() + b"\n")


def main(every_s: float, folders: list[str]) -> int:
    """Print until the pipe is closed. Exit code 1 if the library does not work."""
    sys.path += folders
    try:
        import amdsmi  # type: ignore[import-not-found]

        amdsmi.amdsmi_init()
    except Exception as error:  # noqa: BLE001 - every failure of the library is reported
        print_line({"error": f"{type(error).__name__}: {error}"})
        return 1
    library = AmdsmiLibrary(amdsmi)
    while True:
        try:
            print_line({"gpus": library.gpus()})
        except BrokenPipeError:
            return 0
        time.sleep(every_s)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
