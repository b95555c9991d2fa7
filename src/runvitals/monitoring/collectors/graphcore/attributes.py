"""The attributes that gcipuinfo reports for an IPU: texts such as "36.2 C", "1300MHz", "N/A"."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# End of an attribute's name -> the unit at the end of its value.
UNITS: Mapping[str, str] = {
    "temp": "C",
    "clock": "MHz",
    "power": "W",
    "utilisation": "%",
    "utilisation (session)": "%",
    "speed": "GT/s",
}
# Attributes that vary, written at every sample.
VARYING = (
    "average board temp (C)",
    "average die temp (C)",
    "clock (MHz)",
    "ipu power (W)",
    "total board power (W)",
    "ipu utilisation (%)",
    "ipu utilisation (session) (%)",
)
# Attributes that rarely change: written when an IPU is first seen, when they change, and every few minutes.
# Name -> name in our key, which is that of W&B's pages.
LASTING: Mapping[str, str] = {"link speed (GT/s)": "speed (GT/s)"}
# The library's names for these.
_MEASURED = (
    "average board temp", "average die temp", "clock", "ipu power", "total board power", "ipu utilisation",
    "ipu utilisation (session)", "link speed",
)  # fmt: skip
# The attributes that identify an IPU.
IDENTITY = (
    "id", "board ipu index", "board type", "board serial number", "ipu architecture", "pci id", "numa node",
    "driver version", "firmware version",
)  # fmt: skip


def parse_metric(name: str, value: str) -> tuple[str, float] | None:
    """Return the attribute's name, with its unit if it has one, and its number; None if it has no number.

    Example:
        >>> parse_metric("average die temp", "33.4 C"), parse_metric("clock", "1300MHz")
        (('average die temp (C)', 33.4), ('clock (MHz)', 1300.0))
        >>> parse_metric("numa node", "0"), parse_metric("ipu power", "N/A")
        (('numa node', 0.0), None)
    """
    for end, unit in UNITS.items():
        if name.endswith(end) and value.endswith(unit):
            name, value = f"{name} ({unit})", value[: -len(unit)]
            break
    try:
        number = float(value)
    except ValueError:
        return None
    return (name, number) if number - number == 0.0 else None  # not inf, not nan


def readings(device: Mapping[str, str]) -> dict[str, float]:
    """Return the measured values of an IPU, by name with unit. Takes 20 µs."""
    parsed = [parse_metric(name, device[name].strip()) for name in _MEASURED if name in device]
    return dict(each for each in parsed if each is not None)


def identity(device: Mapping[str, str]) -> dict[str, object]:
    """Return the identity of an IPU, with W&B's names."""
    return {name: device[name] for name in IDENTITY if device.get(name, "N/A") != "N/A"}


def user(device: Mapping[str, str]) -> int | None:
    """Return the PID of the process that uses an IPU, None if there is none."""
    text = device.get("user process id", "").strip()
    return int(text) if text.isdigit() else None
