"""Parse quantities as vendors' tools print them: "36.2 C", "1300MHz", {"value": 91, "unit": "%"}, "N/A"."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# "No value" in signed and unsigned fields of 16, 32 and 64 bits. As a float, the 64-bit ones are powers of 2.
SENTINELS = frozenset((0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1 << 64))
_SHORT = 0xFFFF
# Outside of this range a sensor is off, or the unit is not what it seems.
_COLDEST, _HOTTEST = -100.0, 300.0

# Unit in lower case -> factor to ours. Vendors write MB and mean MiB, and "MW" never means megawatts.
FACTORS: Mapping[str, Mapping[str, float]] = {
    "%": {"%": 1.0},
    "°C": {"c": 1.0, "°c": 1.0, "℃": 1.0, "'c": 1.0, "mc": 1e-3},
    "V": {"v": 1.0, "mv": 1e-3},
    "rpm": {"rpm": 1.0},
    "W": {"w": 1.0, "mw": 1e-3, "uw": 1e-6, "µw": 1e-6},
    "J": {"j": 1.0, "kj": 1e3, "mj": 1e-3, "uj": 1e-6, "µj": 1e-6},
    "MHz": {"mhz": 1.0, "ghz": 1e3, "khz": 1e-3, "hz": 1e-6},
    "GT/s": {"gt/s": 1.0},
    "bytes": {
        "b": 1.0, "bytes": 1.0, "kb": 2.0**10, "kib": 2.0**10, "mb": 2.0**20, "mib": 2.0**20,
        "gb": 2.0**30, "gib": 2.0**30, "tb": 2.0**40, "tib": 2.0**40,
        "k": 2.0**10, "m": 2.0**20, "g": 2.0**30, "t": 2.0**40,
    },
    "bytes/s": {
        "b/s": 1.0, "kb/s": 2.0**10, "kib/s": 2.0**10, "mb/s": 2.0**20, "mib/s": 2.0**20,
        "gb/s": 2.0**30, "gib/s": 2.0**30,
    },
    "1": {"": 1.0},
}  # fmt: skip


_DIGITS = tuple("0123456789")
# Longer texts are not quantities.
_LONGEST = 64
_GREATEST = 1e30


def split(text: str) -> tuple[float, str] | None:
    """Return a number and its unit, without surrounding whitespace and brackets.

    None if the text is not a quantity.

    Example:
        >>> split("1300MHz"), split(" .97 %"), split("(800Mhz)"), split("7")
        ((1300.0, 'MHz'), (0.97, '%'), (800.0, 'Mhz'), (7.0, ''))
        >>> split("36,5 C"), split("1,024 MiB")
        ((36.5, 'C'), None)
        >>> split("N/A"), split("0000:1a:00.0"), split("1.2.3"), split("0x740c"), split("nan")
        (None, None, None, None, None)
    """
    text = text[: 4 * _LONGEST].strip(" \t\r\n()\"'")
    if len(text) > _LONGEST:
        return None
    end = 1 if text[:1] in ("+", "-") else 0
    point = text.find(",") if "." not in text and text.count(",") == 1 else -1
    if point >= 0 and len(_digits(text, point + 1)) in (1, 2):
        text = f"{text[:point]}.{text[point + 1 :]}"  # decimal comma of a locale; 1,024 is ambiguous
    while end < len(text) and (text[end] in "0123456789" or (text[end] == "." and "." not in text[:end])):
        end += 1
    if text[end : end + 1] in ("e", "E"):
        power = end + 2 if text[end + 1 : end + 2] in ("+", "-") else end + 1
        while text[power : power + 1].isdigit():
            end = power = power + 1
    unit = text[end:].strip()
    if any(letter.isdigit() for letter in unit) or unit.startswith("."):
        return None  # an address, a version, a hexadecimal number, a time
    try:
        return float(text[:end]), unit
    except ValueError:
        return None


def _digits(text: str, start: int) -> str:
    """Return the digits from an index on."""
    end = start
    while text[end : end + 1] in _DIGITS:
        end += 1
    return text[start:end]


def is_code(value: float) -> bool:
    """Return whether a number is a code for "no value", which must not be added to others.

    >>> is_code(4294967295.0), is_code(65535.0)
    (True, False)
    """
    return value > _SHORT and value in SENTINELS


def whole(text: object, most: int) -> int | None:
    """Return an integer from 0 to `most`, written with digits only; None for any other text, however long.

    >>> whole(" 7", 9999), whole("²", 9999), whole("9" * 5000, 9999), whole("-1", 9999)
    (7, None, None, None)
    """
    digits = str(text).strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 18):
        return None
    number = int(digits)
    return number if number <= most else None


def heading(title: str) -> tuple[str, str]:
    """Return the name in the heading of a column, in lower case, and the unit in brackets behind it.

    "" without one.

    Example:
        >>> heading("VRAM Total Memory (B)"), heading("GPU Core Temperature (Celsius Degree)")
        (('vram total memory', 'b'), ('gpu core temperature', 'c'))
        >>> heading("Temperature (Sensor edge) (C)"), heading("Clock (shader)"), heading("mclk speed:")
        (('temperature (sensor edge)', 'c'), ('clock (shader)', ''), ('mclk speed', ''))
    """
    title = title.strip().rstrip(":").rstrip().lower()
    name, bracket, unit = title.rpartition("(")
    unit = unit.rstrip(") ").strip()
    unit = "c" if unit.startswith("celsius") else unit
    if not bracket or not any(unit in factors for factors in FACTORS.values()):
        return title, ""
    return name.strip(), unit


def amount(value: object, unit: str, default: str | None = None) -> float | None:
    """Convert a value to one of our units, a key of `FACTORS`.

    None if it has no number: "N/A", a sentinel, a unit of another kind, other text.

    Args:
        value: a number, a text, an object with ``value`` and ``unit``, or a list, whose first usable element
            counts.
        unit: the unit to convert to.
        default: the unit of a bare number, as the vendor writes it; by default ours.

    Example:
        >>> amount("41.0 mW", "W"), amount({"value": 2, "unit": "GB"}, "bytes"), amount(93.5, "J", "uJ")
        (0.041, 2147483648.0, 9.35e-05)
        >>> amount("N/A", "W"), amount(65535, "%"), amount({"value": "N/A", "unit": "W"}, "W")
        (None, None, None)
    """
    if isinstance(value, dict):
        default = str(value.get("unit") or default or "") or None
        value = value.get("value")
    if isinstance(value, list):
        return next(
            (converted for each in value if (converted := amount(each, unit, default)) is not None), None
        )
    if isinstance(value, str):
        parts = split(value)
        if parts is None:
            return None
        value, default = parts[0], parts[1] or default
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > _GREATEST:
        return None
    if value in SENTINELS or value - value != 0.0:  # inf - inf and nan - nan are nan
        return None
    factors = FACTORS[unit]
    factor = 1.0 if default is None else factors.get(default.lower())
    if factor is None or (unit == "°C" and not _COLDEST <= value * factor <= _HOTTEST):
        return None
    return value * factor
