"""Parser of the text formats of exporters: Prometheus' format 0.0.4 and OpenMetrics 1.0.

Lines that cannot be parsed are skipped and counted: one broken metric must not hide the others. Written
without ``re``, which would cost the monitor 1.3 MB. A line costs 4 µs; one with seven labels that are not in
the `HeadCache` yet costs 30 µs.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

COUNTER = "counter"
GAUGE = "gauge"
CREATED = "created"

_TYPES = frozenset(
    ("counter", "gauge", "histogram", "summary", "info", "stateset", "gaugehistogram", "unknown")
)
# Suffix of a sample's name -> the types of families whose samples have it.
_SUFFIXES = {
    "_total": ("counter",),
    "_bucket": ("histogram", "gaugehistogram"),
    "_count": ("histogram", "summary"),
    "_sum": ("histogram", "summary"),
    "_gcount": ("gaugehistogram",),
    "_gsum": ("gaugehistogram",),
    "_info": ("info",),
    "_created": ("counter", "histogram", "summary"),
}
_MAX_SHOWN_LENGTH = 120
# Limits on what is kept, however long a response is: cached names and labels, the last families, the start of
# a help text.
_MAX_CACHED, _MAX_CACHED_CHARACTERS = 10_000, 1 << 20
_MAX_FAMILIES = 5_000
_MAX_HELP_LENGTH = 1_000
MAX_LINE_LENGTH = 64 * 1024


class ExpositionFamily:
    """A metric's metadata, from the comments before its samples: type (or "unknown"), help text, unit."""

    __slots__ = ("help", "type", "unit")

    def __init__(self) -> None:
        self.type = "unknown"
        self.help = ""
        self.unit = ""


class ExpositionSample:
    """One line: the metric's name, labels and value, and the Unix time in seconds if the line has one."""

    __slots__ = ("labels", "name", "time_s", "value")

    def __init__(self, name: str, labels: dict[str, str], value: float, time_s: float | None = None) -> None:
        self.name = name
        self.labels = labels
        self.value = value
        self.time_s = time_s

    def __repr__(self) -> str:
        return f"ExpositionSample({self.name!r}, {self.labels!r}, {self.value!r}, {self.time_s!r})"


class Exposition:
    """A parsed response of an exporter.

    Attributes:
        samples: in the order of the text, if read with `parse`.
        families: metric name -> its metadata; limited to the last 5000.
        bad: how many lines could not be parsed; `first_bad` has the first one's number, text and error.
        ended: whether ``# EOF`` was seen. An OpenMetrics text without it is truncated.
    """

    __slots__ = ("_kinds", "bad", "ended", "families", "first_bad", "samples")

    def __init__(self) -> None:
        self.samples: list[ExpositionSample] = []
        self.families: dict[str, ExpositionFamily] = {}
        self.bad = 0
        self.first_bad = ""
        self.ended = False
        self._kinds: dict[str, str] = {}

    def kind(self, name: str) -> str:
        r"""Return the kind of the samples of this name.

        COUNTER (running totals: counters, and the buckets, sums and counts of histograms and summaries),
        CREATED (start time of a counter), or GAUGE.

        Example:
            >>> parse(b"# TYPE jobs counter\njobs_total 7\n").kind("jobs_total")
            'counter'
        """
        kind = self._kinds.get(name)
        if kind is None:
            if len(self._kinds) >= _MAX_FAMILIES:
                self._kinds.clear()
            kind = self._kinds[name] = self._kind(name)
        return kind

    def family(self, name: str) -> ExpositionFamily | None:
        """Return the family of the samples of this name, or None if no comment describes one."""
        family = self.families.get(name)
        if family is not None and family.type != "unknown":
            return family
        for suffix, types in _SUFFIXES.items():
            if name.endswith(suffix):
                wider = self.families.get(name[: -len(suffix)])
                if wider is not None and wider.type in types:
                    return wider
        return family

    def forget(self, name: str) -> None:
        """Drop a family whose samples have been read: they follow its comments."""
        del self.families[name]
        self._kinds.clear()

    def _kind(self, name: str) -> str:
        if name.endswith("_created") and self._has_created(name[: -len("_created")]):
            return CREATED
        family = self.family(name)
        if family is None:
            return GAUGE
        if family.type == "counter":
            return COUNTER
        if family.type in ("histogram", "summary") and name.endswith(("_bucket", "_count", "_sum")):
            return COUNTER
        return GAUGE

    def _has_created(self, stem: str) -> bool:
        """Return whether a family may have ``_created``; counters of format 0.0.4 end in ``_total``."""
        families = (self.families.get(stem), self.families.get(f"{stem}_total"))
        return any(family is not None and family.type in _SUFFIXES["_created"] for family in families)


def parse(
    data: bytes,
    openmetrics: bool | None = None,
    heads: dict[str, tuple[str, dict[str, str]]] | None = None,
) -> Exposition:
    r"""Parse a whole response.

    Args:
        data: UTF-8; invalid bytes become U+FFFD.
        openmetrics: whether times are in seconds (OpenMetrics) or milliseconds; None means OpenMetrics if the
            text ends with ``# EOF``.
        heads: text -> parsed name and labels, from earlier responses of the same exporter; new ones are
            added. Samples share these labels: do not modify them.

    Example:
        >>> found = parse(b'# TYPE temp gauge\ntemp{gpu="0"} 41.5\n')
        >>> found.samples[0].labels, found.samples[0].value, found.kind("temp")
        ({'gpu': '0'}, 41.5, 'gauge')
    """
    if openmetrics is None:
        openmetrics = data.rstrip().endswith(b"# EOF")
    page = Exposition()
    parser = ExpositionParser(page.samples.append, HeadCache(heads), openmetrics, page)
    parser.feed(data)
    parser.end()
    return page


class HeadCache:
    """A bounded cache of parsed names and labels, by their text.

    Args:
        heads: entries of earlier responses; new ones are added.
    """

    __slots__ = ("_characters", "heads")

    def __init__(self, heads: dict[str, tuple[str, dict[str, str]]] | None = None) -> None:
        self.heads = {} if heads is None else heads
        self._characters = sum(map(len, self.heads))

    def add(self, head: str, name: str, labels: dict[str, str]) -> None:
        """Keep a name and labels, if there is space."""
        if len(self.heads) < _MAX_CACHED and self._characters + len(head) < _MAX_CACHED_CHARACTERS:
            self.heads[head] = name, labels
            self._characters += len(head)


class ExpositionParser:
    r"""Parses a response in pieces, so that a long one is never held in memory as a whole.

    Args:
        take: called with each sample.
        heads: cache of the same exporter's earlier responses. Samples share these labels: do not modify them.
        openmetrics: whether times are in seconds (OpenMetrics) or milliseconds.
        page: receives everything but the samples; `take` may read it.

    Example:
        >>> parser = ExpositionParser(samples.append)
        >>> parser.feed(b"up 1\nbusy ")
        >>> parser.feed(b"7\n")
        >>> parser.end()
        >>> samples
        [ExpositionSample('up', {}, 1.0, None), ExpositionSample('busy', {}, 7.0, None)]
    """

    __slots__ = (
        "_heads",
        "_number",
        "_over",
        "_rest",
        "_skips",
        "_take",
        "_ticks_per_second",
        "page",
        "taken",
    )

    def __init__(
        self,
        take: Callable[[ExpositionSample], None],
        heads: HeadCache | None = None,
        openmetrics: bool = False,
        page: Exposition | None = None,
    ) -> None:
        self.page = Exposition() if page is None else page
        self.taken = 0
        self._take = take
        self._heads = heads or HeadCache()
        self._ticks_per_second = 1.0 if openmetrics else 1000.0
        self._number = 0
        self._rest = b""
        self._skips = False
        self._over = False

    def feed(self, data: bytes) -> None:
        """Parse another piece, which may be cut anywhere."""
        end = data.rfind(b"\n") + 1
        if not end:
            self._keep(self._rest + data)
            return
        # Not splitlines(): a label's value may contain other line separators of Unicode.
        lines = (self._rest + data[:end]).decode("utf-8", "replace").split("\n")
        lines.pop()
        if self._skips:
            lines[0], self._skips = "", False
        for line in lines:
            self._line(line)
        self._rest = b""
        self._keep(data[end:])

    def end(self) -> None:
        """Parse the last line, which may lack a newline."""
        if self._rest and not self._skips:
            self._line(self._rest.decode("utf-8", "replace"))
        self._rest = b""

    def _keep(self, rest: bytes) -> None:
        """Keep the start of an incomplete line, unless it is too long."""
        if len(rest) > MAX_LINE_LENGTH:
            if not self._skips:
                line = rest[:MAX_LINE_LENGTH].decode("utf-8", "replace")
                _note_bad(self.page, self._number + 1, line, f"longer than {MAX_LINE_LENGTH} bytes")
            self._skips = True
            rest = b""
        self._rest = rest

    def _line(self, line: str) -> None:
        self._number += 1
        line = line.strip(" \t\r" if self._number > 1 else " \t\r\ufeff")
        page = self.page
        if not line:
            return
        if page.ended:
            if not self._over:
                _note_bad(page, self._number, line, "text after # EOF")
            self._over = True
            return
        try:
            if line[0] == "#":
                _comment(page, line)
                return
            sample = _sample(line, self._ticks_per_second, self._heads)
        except ValueError as error:
            _note_bad(page, self._number, line, str(error))
            return
        self.taken += 1
        self._take(sample)


def _note_bad(page: Exposition, number: int, line: str, fault: str) -> None:
    page.bad += 1
    if not page.first_bad:
        excerpt = line if len(line) <= _MAX_SHOWN_LENGTH else line[: _MAX_SHOWN_LENGTH - 1] + "…"
        page.first_bad = f"line {number}, {excerpt!r}: {fault}"


def _comment(page: Exposition, line: str) -> None:
    parts = line[1:].split(None, 1)
    if len(parts) < 2:
        page.ended = parts == ["EOF"]
        return
    word, rest = parts
    if word not in ("HELP", "TYPE", "UNIT"):
        return
    name, at = _read_quoted(rest, 0) if rest[0] == '"' else _word(rest)
    text = rest[at:].strip(" \t")
    if word == "TYPE":
        text = text.lower()  # some libraries write COUNTER
        text = "unknown" if text == "untyped" else text
        if text not in _TYPES:
            raise ValueError(f"unknown type {text!r}")
    family = page.families.get(name)
    if family is None:
        if len(page.families) >= _MAX_FAMILIES:
            page.forget(next(iter(page.families)))
        family = page.families[name] = ExpositionFamily()
    if word == "TYPE":
        family.type = text
    elif word == "UNIT":
        family.unit = text
    else:
        family.help = _unescape(text[:_MAX_HELP_LENGTH])


def _word(text: str) -> tuple[str, int]:
    word = text.replace("\t", " ").partition(" ")[0]
    return word, len(word)


def _sample(line: str, ticks_per_second: float, heads: HeadCache) -> ExpositionSample:
    head = line[: line.rfind("}") + 1]
    if head in heads.heads:
        name, labels = heads.heads[head]
        return ExpositionSample(name, labels, *_value_and_time(_numbers(line, len(head)), ticks_per_second))
    sample, at = _new_sample(line, ticks_per_second)
    # The last brace may be that of an exemplar.
    if head and at == len(head):
        heads.add(head, sample.name, sample.labels)
    return sample


def _new_sample(line: str, ticks_per_second: float) -> tuple[ExpositionSample, int]:
    """Return the sample of a line, and the index where its name and labels end."""
    labels: dict[str, str] = {}
    brace = line.find("{")
    hash_sign = line.find(" # ")
    if brace < 0 or 0 <= hash_sign < brace:  # the braces of an exemplar, not of labels
        name, at = _word(line)
    else:
        name = line[:brace].rstrip(" \t")
        inner_name, at = _labels(line, brace + 1, labels)
        if name and inner_name:
            raise ValueError("two metric names")
        if inner_name:
            numbers = _numbers(line, at)
            return ExpositionSample(inner_name, labels, *_value_and_time(numbers, ticks_per_second)), at
    if not _is_name(name.replace(":", "_")):
        raise ValueError(f"invalid metric name {name!r}")
    return ExpositionSample(name, labels, *_value_and_time(_numbers(line, at), ticks_per_second)), at


def _numbers(line: str, at: int) -> list[str]:
    """Return the value and the time, if any, without an exemplar behind them."""
    return line[at:].partition("#")[0].split()


def _value_and_time(numbers: list[str], ticks_per_second: float) -> tuple[float, float | None]:
    if not numbers:
        raise ValueError("missing value")
    if len(numbers) > 2:
        raise ValueError(f"{' '.join(numbers)!r} is more than a value and a time")
    value = _number(numbers[0])
    return value, None if len(numbers) == 1 else _number(numbers[1]) / ticks_per_second


def _number(text: str) -> float:
    # Only Python accepts 1_000 as a number.
    if "_" in text:
        raise ValueError(f"{text!r} is not a number")
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None


def _is_name(name: str) -> bool:
    return name.isidentifier() and name.isascii()


def _labels(line: str, at: int, labels: dict[str, str]) -> tuple[str, int]:
    """Parse ``name="value", …}`` into `labels`.

    Returns the metric's name if it is among them, else "", and the index behind the brace. A quoted name may
    contain any characters.
    """
    metric = ""
    while True:
        at = _skip(line, at, " \t")
        if line[at : at + 1] == "}":
            return metric, at + 1
        if line[at : at + 1] == '"':
            name, at = _read_quoted(line, at)
            at = _skip(line, at, " \t")
            if line[at : at + 1] != "=":
                if metric or labels:
                    raise ValueError(f"label {name!r} has no value")
                metric = name
                at = _next_label(line, at)
                continue
        else:
            equals = line.find("=", at)
            name = line[at:equals].rstrip(" \t") if equals >= 0 else line[at:]
            if not _is_name(name):
                raise ValueError(f"invalid label name {name!r}")
            at = equals
        at = _skip(line, at + 1, " \t")
        if line[at : at + 1] != '"':
            raise ValueError(f"the value of label {name!r} is not quoted")
        if name in labels:
            raise ValueError(f"duplicate label {name!r}")
        labels[name], at = _read_quoted(line, at)
        at = _next_label(line, at)


def _next_label(line: str, at: int) -> int:
    """Return the index behind the comma between two labels, or of the closing brace."""
    at = _skip(line, at, " \t")
    sign = line[at : at + 1]
    if sign == ",":
        return at + 1
    if sign == "}":
        return at
    raise ValueError("expected a comma or a closing brace after a label")


def _skip(line: str, at: int, signs: str) -> int:
    while at < len(line) and line[at] in signs:
        at += 1
    return at


def _read_quoted(line: str, at: int) -> tuple[str, int]:
    """Return the text in the quotes that open at `at`, and the index behind them."""
    start = at + 1
    end = line.find('"', start)
    while end >= 0 and _is_escaped(line, start, end):
        end = line.find('"', end + 1)
    if end < 0:
        raise ValueError("unterminated quotes")
    text = line[start:end]
    return (_unescape(text) if "\\" in text else text), end + 1


def _is_escaped(line: str, start: int, end: int) -> bool:
    before = end
    while before > start and line[before - 1] == "\\":
        before -= 1
    return (end - before) % 2 == 1


def _unescape(text: str) -> str:
    r"""Replace ``\\``, ``\"`` and ``\n`` by their characters; a backslash before another character stays."""
    if "\\" not in text:
        return text
    clean, at = "", 0
    while (sign := text.find("\\", at)) >= 0:
        following = text[sign + 1 : sign + 2]
        meant = _ESCAPES.get(following)
        clean += text[at:sign] + (f"\\{following}" if meant is None else meant)
        at = sign + 2
    return clean + text[at:]


_ESCAPES: Mapping[str, str] = {"\\": "\\", '"': '"', "n": "\n"}
