"""Parses values given on the command line, and says which arguments do not go together."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from typing import Any

from runvitals.base.numbers import parse_integer, parse_number
from runvitals.model.durations import DAY_MS, HOUR_MS
from runvitals.model.limits import INT64
from runvitals.model.local_path import checked_server_path
from runvitals.monitoring.settings.settings import SETTINGS

_TIMES_MS = {"h": HOUR_MS, "d": DAY_MS, "w": 7 * DAY_MS, "y": 8766 * HOUR_MS}
_SIZES = {f"{prefix}B": 1000**power for power, prefix in enumerate(("K", "M", "G", "T", "P"), 1)}
_SIZES |= {f"{prefix}iB": 1024**power for power, prefix in enumerate(("K", "M", "G", "T", "P"), 1)}
_MOST = 1e15
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zA-Z]+)", re.ASCII)


def time_ms(text: str) -> int:
    """Return a positive duration in ms.

    Example:
        >>> time_ms("90d"), time_ms("12h")
        (7776000000, 43200000)
    """
    return _parse_quantity(text, _TIMES_MS, "a number with the unit h, d, w or y, such as 90d")


def size_bytes(text: str) -> int:
    """Return a positive size in bytes; KB is 1000 bytes and KiB 1024.

    Example:
        >>> size_bytes("200GB"), size_bytes("1.5GiB")
        (200000000000, 1610612736)
    """
    return _parse_quantity(
        text, _SIZES, "a number with the unit KB, MB, GB, TB, KiB, MiB, GiB or TiB, such as 200GB"
    )


def _parse_quantity(text: str, units: dict[str, int], expected: str) -> int:
    match = _QUANTITY.fullmatch(text.strip())
    by_name = {name.lower(): factor for name, factor in units.items()}
    factor = by_name.get(match[2].lower()) if match else None
    number = parse_number(match[1], 0.0, _MOST) if match else None
    value = round(number * factor) if number is not None and factor is not None else 0
    if not 0 < value < INT64:
        raise argparse.ArgumentTypeError(f"invalid value {text!r:.80}: expected {expected}")
    return value


def joined_setting(name: str, texts: Sequence[str] | None) -> Any:
    """Return the value of a setting whose option may be repeated.

    Lists and tables are joined; of other values, the last one counts.

    Raises:
        SettingError: an invalid value.

    Example:
        >>> joined_setting("tags", ["a,b", "c"]), joined_setting("project", ["x", "y"])
        (['a', 'b', 'c'], 'y')
    """
    if not texts:
        return None
    values = [SETTINGS[name].parse(text, f"--{name.replace('_', '-')}") for text in texts]
    if all(isinstance(value, list) for value in values):
        return [item for value in values for item in value]
    if all(isinstance(value, dict) for value in values):
        return {key: item for value in values for key, item in value.items()}
    return texts[-1]


def positive_integer(text: str) -> int:
    """Return a count from 1, or raise ArgumentTypeError."""
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        raise argparse.ArgumentTypeError(f"{text[:60]!r}: expected a number from 1")
    return int(text)


def number_between(low: float, high: float, also: str = "") -> Callable[[str], float]:
    """Return the type of an argument that is a number in a range.

    Args:
        also: an addition to the message, such as ", or `max`".

    Example:
        >>> number_between(0.1, 3600)("1.5")
        1.5
    """

    def parsed(text: str) -> float:
        number = parse_number(text, low, high)
        if number is None:
            raise argparse.ArgumentTypeError(
                f"invalid value {text!r:.80}: expected a number from {low:g} to {high:g}{also}"
            )
        return number

    return parsed


def integer_between(low: int, high: int) -> Callable[[str], int]:
    """Return the type of an argument that is an integer in a range.

    Example:
        >>> integer_between(1, 30)("7")
        7
    """

    def parsed(text: str) -> int:
        number = parse_integer(text.strip(), high)
        if number is None or number < low:
            raise argparse.ArgumentTypeError(
                f"invalid value {text!r:.80}: expected an integer from {low} to {high}"
            )
        return number

    return parsed


def server_path(text: str) -> str:
    """Return the path below which a proxy passes requests on.

    Example:
        >>> server_path("/team/runvitals/")
        '/team/runvitals'
    """
    try:
        return checked_server_path(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_server_path(parser: argparse.ArgumentParser) -> None:
    """Add the option `--path`."""
    parser.add_argument(
        "--path",
        type=server_path,
        default="",
        help="the path below which a proxy passes requests on, if it keeps it: /runvitals",
    )


def row_id(text: str) -> int:
    """Return a number of the ID column of a list."""
    number = parse_integer(text.strip(), INT64 - 1)
    if number is None:
        raise argparse.ArgumentTypeError(f"{text!r:.80}: expected a number of the ID column")
    return number


def address(text: str) -> tuple[str, int]:
    """Return host and port.

    Example:
        >>> address("0.0.0.0:8900"), address("[::1]:0")
        (('0.0.0.0', 8900), ('::1', 0))
    """
    host, colon, port_text = text.rpartition(":")
    port = parse_integer(port_text, 65535)
    if not (colon and host) or port is None:
        raise argparse.ArgumentTypeError(
            f"invalid address {text!r:.80}; expected HOST:PORT, such as 127.0.0.1:8900"
        )
    return host.strip("[]"), port
