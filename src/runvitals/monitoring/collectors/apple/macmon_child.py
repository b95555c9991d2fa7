"""Runs the package `macmon-lib` in a child process, and prints a line of JSON for each sample.

The package takes 10 MB, and a panic in it ends its process. So the monitor runs this file as a child::

    python -I -S -E macmon_child.py SECONDS FOLDER…

FOLDER… are added to sys.path. Each line is ``{"usage": …, "power": …, "memory": …, "temp": …, "soc": …}``, as
`macmon_output.py` reads it. After a line ``{"error": "…"}`` it exits. It also exits when the reader closes
the pipe.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any


def chip_of(info: Any) -> dict[str, Any]:
    """Return the chip, with the names of `macmon pipe --soc-info`."""
    cores = {"ecpu_cores": 0, "pcpu_cores": 0}
    for domain in info.cpu_domains:
        cores["pcpu_cores" if "PCPU" in domain.name.upper() else "ecpu_cores"] += domain.units
    return {
        "chip_name": info.chip_name,
        "mac_model": info.mac_model,
        "gpu_cores": info.gpu_cores,
        "gpu_freqs": list(info.gpu_frequencies_mhz),
        **cores,
    }


def usage_of(entries: Any) -> list[dict[str, Any]]:
    """CPU or GPU clusters: clock, and share of their highest performance."""
    return [
        {"name": each.name, "units": each.units, "freq_mhz": each.frequency_mhz, "usage": each.usage}
        for each in entries
    ]


def sample_of(metrics: Any) -> dict[str, Any]:
    """One sample, with the names of macmon's JSON."""
    power, memory, temperature = metrics.power, metrics.memory, metrics.temperature
    return {
        "usage": {"cpu": usage_of(metrics.cpu_usage), "gpu": usage_of(metrics.gpu_usage)},
        "power": {name: getattr(power, name) for name in ("cpu", "gpu", "ram", "gpu_ram", "ane", "board")},
        "memory": {
            name: getattr(memory, name) for name in ("ram_total", "ram_usage", "swap_total", "swap_usage")
        },
        "temp": {"cpu_avg": temperature.cpu_average, "gpu_avg": temperature.gpu_average},
    }


def print_line(report: dict[str, Any]) -> None:
    """Write a line directly: nothing stays in a buffer that could not be flushed at exit."""
    os.write(1, json.dumps(report).encode() + b"\n")


def main(every_s: float, folders: list[str]) -> int:
    """Print until the pipe is closed. Exit code 1 if the library does not work."""
    sys.path += folders
    try:
        import macmon  # type: ignore[import-not-found]

        sampler = macmon.Sampler()
        chip = chip_of(macmon.soc_info())
        next_s = time.monotonic()
        while True:
            # A sample covers the time since the last one: equal intervals, on an absolute clock.
            next_s += every_s
            time.sleep(max(0.0, next_s - time.monotonic()))
            now_s = time.time()
            stamp = time.strftime("%Y-%m-%dT%H:%M:", time.gmtime(now_s)) + f"{now_s % 60.0:09.6f}"
            line = {"timestamp": stamp, "soc": chip, **sample_of(sampler.metrics())}
            print_line(line)
    except BrokenPipeError:
        return 0
    except Exception as error:  # noqa: BLE001 - every failure of the library is reported
        print_line({"error": f"{type(error).__name__}: {error}"})
        return 1


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
