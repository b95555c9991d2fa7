"""Parsers of vendors' output into rows: for each device a dictionary of the tool's names and values.

Nested names are joined by dots. Values are texts or JSON values, converted to numbers by
`runvitals.collectors.plumbing.quantity`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Row = dict[str, object]


def text_of(output: bytes) -> str:
    """The output as text, without terminal colours. Invalid UTF-8 is replaced."""
    first, *others = output.decode("utf-8", "replace").split("\x1b")
    return first + "".join(_after_escape(part) for part in others)


def _after_escape(text: str) -> str:
    """The text after an escape sequence: "[31mred", "]0;title\a", or a single letter."""
    if text[:1] == "]":
        return text.partition("\a")[2]
    end = 1
    if text[:1] == "[":
        while end < len(text) and not "@" <= text[end] <= "~":
            end += 1
        end += 1
    return text[end:]


def csv(text: str, names: Sequence[str] = (), key: str = "") -> list[Row]:
    """Rows of comma-separated values, in the tool's order. Lines before the header, lines with another
    number of cells (warnings, an incomplete line) and repeated headers are left out.

    Args:
        names: of the columns, if the tool prints no header.
        key: otherwise, a column by which the header is recognized; units in the header's brackets are
            removed.

    Example:
        >>> csv("index, memory.used [MiB]\\n0, 606 MiB\\n", key="index")
        [{'index': '0', 'memory.used': '606 MiB'}]
        >>> csv("0, 606 MiB\\n1, 5", ["index", "memory.used"])
        [{'index': '0', 'memory.used': '606 MiB'}, {'index': '1', 'memory.used': '5'}]
    """
    header = list(names)
    rows: list[Row] = []
    for line in text.splitlines():
        cells = commas(line, len(header))
        plain = [cell.partition("[")[0].strip() for cell in cells]
        if not header:
            header = plain if key in plain else []
        elif len(cells) == len(header) and any(cells) and plain != header:
            rows.append(dict(zip(header, cells, strict=True)))
    return rows


def commas(line: str, count: int) -> list[str]:
    """The cells of a line between commas. Commas in quotes do not separate, and commas without a space after
    them only if otherwise there are too few cells: names and localized numbers contain some.

    Example:
        >>> commas('0, "Acme, rev. 2", 54.00 W', 3), commas("0, 54,5 W, 61", 3)
        (['0', 'Acme, rev. 2', '54.00 W'], ['0', '54,5 W', '61'])
    """
    cells = [""]
    for number, part in enumerate(line.split('"')):
        first, *others = [part] if number % 2 else part.split(",")
        cells[-1] += first
        cells += others
    wider = line.split(", ")
    found = wider if len(cells) > count == len(wider) else cells
    return [cell.strip(' "') for cell in found]


_WELL = (
    "ok",
    "good",
    "normal",
    "healthy",
    "alive",
    "live",
    "online",
    "running",
    "active",
    "available",
    "ready",
    "true",
    "yes",
    "1",
    "1.0",
)
# Tools' texts for an unknown value.
UNKNOWN = ("", "-", "--", "n/a", "na", "none", "null", "unknown", "not supported", "not available")


def healthy(value: object) -> float | None:
    """The value of a health status: 1 for healthy, 0 for any other, None if there is none.

    Example:
        >>> healthy("OK"), healthy("Alarm"), healthy("NA"), healthy(True), healthy(False)
        (1.0, 0.0, None, 1.0, 0.0)
    """
    word = str(value).strip(" []").lower()
    return None if word in UNKNOWN else float(word in _WELL)


def flat(value: object, prefix: str = "") -> Row:
    """A tree of JSON objects as one row. Names lose surrounding spaces ("Power Draw "); lists stay.

    Example:
        >>> flat({"Index": "0", "Power Readings": {"Power Draw ": "96W"}})
        {'Index': '0', 'Power Readings.Power Draw': '96W'}
    """
    if not isinstance(value, dict):
        return {prefix: value}
    row: Row = {}
    for name, inner in value.items():
        row.update(flat(inner, f"{prefix}.{name.strip()}" if prefix else name.strip()))
    return row


def objects(value: object) -> list[Row]:
    """The JSON objects of a list, or a single one, each as one row."""
    found = value if isinstance(value, list) else [value]
    return [flat(each) for each in found if isinstance(each, dict)]


def tree(text: str, start: str) -> list[Row]:
    """Devices in an indented tree of ``name : value`` lines. An unindented line without a value that begins
    with `start` begins a device; the rest of that line is its "" entry.

    Example:
        >>> tree("XPU 0000:01:00.0\\n    Temperature\\n        Current : 46 C\\n", "XPU ")
        [{'': '0000:01:00.0', 'Temperature.Current': '46 C'}]
    """
    rows: list[Row] = []
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        name, colon, value = line.partition(" : ")
        indent, name = len(name) - len(name.lstrip()), name.strip()
        if not colon and not indent and line.startswith(start):
            rows.append({"": line[len(start) :].strip()})
            above = []
            continue
        if not rows or not name:
            continue
        while above and above[-1][0] >= indent:
            above.pop()
        if colon:
            rows[-1][".".join([*(title for _, title in above), name])] = value.strip()
        else:
            above.append((indent, name))
    return rows


def cells_of(line: str) -> list[str]:
    """The cells of a line of a table drawn with "|", [] for any other line."""
    line = line.strip()
    return [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
