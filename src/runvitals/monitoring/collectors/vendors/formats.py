"""Parsers of vendors' output into rows: for each device a dictionary of the tool's names and values.

Nested names are joined by dots. Values are texts or JSON values, converted to numbers by
`runvitals.monitoring.collectors.plumbing.quantity`.
"""

from __future__ import annotations

from runvitals.monitoring.collectors.plumbing.plain_text import text_of as text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Row = dict[str, object]


def csv(text: str, names: Sequence[str] = (), key: str = "") -> list[Row]:
    r"""Rows of comma-separated values, in the tool's order.

    Lines before the header, lines with another number of cells (warnings, an incomplete line) and repeated
    headers are left out.

    Args:
        text: what the tool has printed.
        names: of the columns, if the tool prints no header.
        key: otherwise, a column by which the header is recognized; units in the header's brackets are
            removed.

    Example:
        >>> csv("index, memory.used [MiB]\n0, 606 MiB\n", key="index")
        [{'index': '0', 'memory.used': '606 MiB'}]
        >>> csv("0, 606 MiB\n1, 5", ["index", "memory.used"])
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
    """Return the cells of a line between commas.

    Commas in quotes do not separate, and commas without a space after them only if otherwise there are too
    few cells: names and localized numbers contain some.

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
    fields = wider if len(cells) > count == len(wider) else cells
    return [cell.strip(' "') for cell in fields]


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
# Those of several words, or that look like something else.
_WORDY = ("not supported", "not available", "unknown error", "err!")


def without_unknown(text: str) -> str:
    """Return a line or cell of a table, with "N/A" for every unknown value.

    All other words stay where they were.

    Example:
        >>> without_unknown("3  [Not Supported]  12 / 64 MiB  ERR!  [N/A]%")
        '3  N/A              12 / 64 MiB  N/A   N/A%'
    """
    text = _with_na(text, _find_bracketed(text))
    small = text.lower()
    return _with_na(text, [span for wordy in _WORDY for span in _spans_of(small, wordy)])


def _with_na(text: str, spans: Iterable[tuple[int, int]]) -> str:
    for start, end in sorted(spans, reverse=True):
        blanks = " " * (end - start - 3) if text[end : end + 1] in (" ", "") else ""
        text = f"{text[:start]}N/A{blanks}{text[end:]}"
    return text


def _spans_of(text: str, part: str) -> Iterator[tuple[int, int]]:
    start = text.find(part)
    while start >= 0:
        yield start, start + len(part)
        start = text.find(part, start + len(part))


def _find_bracketed(text: str) -> Iterator[tuple[int, int]]:
    """Find words in brackets: "[Unknown Error]", not "[3]"."""
    start = text.find("[")
    while start >= 0:
        end = text.find("]", start) + 1
        inner = text[start + 1 : end - 1]
        if end and inner and not any(letter.isdigit() or letter == "[" for letter in inner):
            yield start, end
        start = text.find("[", start + 1)


def healthy(value: object) -> float | None:
    """Return the value of a health status: 1 for healthy, 0 for any other, None if there is none.

    Example:
        >>> healthy("OK"), healthy("Alarm"), healthy("NA"), healthy(True), healthy(False)
        (1.0, 0.0, None, 1.0, 0.0)
    """
    word = str(value).strip(" []").lower()
    return None if word in UNKNOWN else float(word in _WELL)


def flat(value: object, prefix: str = "") -> Row:
    """Return a tree of JSON objects as one row. Names lose surrounding spaces ("Power Draw "); lists stay.

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
    """Return the JSON objects of a list, or a single one, each as one row."""
    entries = value if isinstance(value, list) else [value]
    return [flat(each) for each in entries if isinstance(each, dict)]


def tree(text: str, start: str) -> list[Row]:
    r"""Devices in an indented tree of ``name : value`` lines.

    A line without a value that begins with `start`, as far to the left as the first such line, begins a
    device; the rest of that line is its "" entry. Other lines without a value are titles of the lines
    indented below them; they may end in a colon.

    Example:
        >>> tree("XPU 0000:01:00.0\n    Temperature\n        Current : 46 C\n", "XPU ")
        [{'': '0000:01:00.0', 'Temperature.Current': '46 C'}]
    """
    rows: list[Row] = []
    above: list[tuple[int, str]] = []
    start_indent: int | None = None
    for line in text.splitlines():
        name, colon, value = line.rstrip().partition(" : ")
        indent, name = len(name) - len(name.lstrip()), name.strip()
        if not colon and name.startswith(start) and start_indent in (None, indent):
            rows.append({"": name[len(start) :].strip()})
            above, start_indent = [], indent
            continue
        if not colon:
            name, colon, value = name.removesuffix(":").rstrip().partition(": ")
        if not rows or not name:
            continue
        while above and above[-1][0] >= indent:
            above.pop()
        if colon:
            rows[-1][".".join([*(title for _, title in above), name.rstrip()])] = value.strip()
        else:
            above.append((indent, name))
    return rows
