"""Parses the output of ``ioreg`` about the GPU: a property list (``-a``), or a tree of lines.

`plistlib` also reads property lists, but imports `re`, `datetime`, `enum` and `xml.parsers`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&"))
INCOMPLETE = "incomplete property list"


class IoregGpu:
    """One GPU: its properties, and its driver's statistics by the driver's names."""

    __slots__ = ("about", "is_apples", "model", "statistics")

    def __init__(self, properties: Mapping[str, Any], statistics: dict[str, float]) -> None:
        names = ("IORegistryEntryName", "IOObjectClass", "IOClass", "CFBundleIdentifier")
        self.is_apples = any("AGX" in str(properties.get(name, "")) for name in names)
        self.model = str(properties.get("model", "")).rstrip("\0")
        self.statistics = statistics
        cores = properties.get("gpu-core-count")
        self.about: dict[str, object] = {"gpu_cores": cores} if isinstance(cores, int) else {}


def parse(output: bytes) -> list[IoregGpu]:
    """Return the GPUs that have statistics, in registry order. If one is Apple's, the others are left out.

    Raises:
        ValueError: there is none, or the output is incomplete.

    Example:
        >>> line = b'"PerformanceStatistics" = {"Device Utilization %"=42,"recoveryCount"=0}'
        >>> parse(line)[0].statistics
        {'Device Utilization %': 42.0, 'recoveryCount': 0.0}
    """
    text = output.decode("utf-8", "replace")
    entries = _of_list(text) if "<plist" in text else _of_tree(text)
    gpus = [IoregGpu(entry, entry["PerformanceStatistics"]) for entry in entries]
    if not gpus:
        raise ValueError("ioreg lists no GPU with PerformanceStatistics")
    return [gpu for gpu in gpus if gpu.is_apples] or gpus


def _of_list(text: str) -> list[dict[str, Any]]:
    value = property_list(text)
    entries = value if isinstance(value, list) else [value]
    dictionaries = []
    for entry in entries:
        statistics = entry.get("PerformanceStatistics") if isinstance(entry, dict) else None
        if isinstance(statistics, dict):
            numbers = {name: float(each) for name, each in statistics.items() if _is_number(each)}
            dictionaries.append({**entry, "PerformanceStatistics": numbers})
    return dictionaries


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def property_list(text: str) -> Any:
    """Parse an XML property list. Dates, and data that is not text, are returned as text.

    Raises:
        ValueError: it is incomplete, or contains an invalid number.

    Example:
        >>> property_list("<plist><dict><key>a</key><array><real>1</real><true/></array></dict></plist>")
        {'a': [1.0, True]}
    """
    _, start, body = text.partition("<plist")
    if not start:
        raise ValueError("not a property list")
    tokens = _tokens(body)
    tag, content = next(tokens, ("", ""))
    value = _read(tokens, tag, content) if tag else None
    if not tag or not any(tag == "/plist" for tag, _ in tokens):
        raise ValueError(INCOMPLETE)
    return value


def _tokens(body: str) -> Iterator[tuple[str, str]]:
    """Tags without brackets, each with the text after it."""
    for part in body.split("<")[1:]:
        tag, bracket, content = part.partition(">")
        if not bracket:
            return
        if not tag.startswith(("!", "?")):
            yield tag, content


def _read(tokens: Iterator[tuple[str, str]], tag: str, content: str) -> Any:
    """Return the value that a tag opens; consumes all its tokens."""
    kind = tag.rstrip("/ ")
    is_empty = kind != tag
    if kind == "dict":
        return {} if is_empty else _read_dict(tokens)
    if kind == "array":
        return [] if is_empty else _read_array(tokens)
    if tag.startswith("/"):
        raise ValueError(INCOMPLETE)
    return _value(kind, "" if is_empty else _plain(content))


def _read_dict(tokens: Iterator[tuple[str, str]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    name = ""
    for tag, content in tokens:
        if tag == "/dict":
            return members
        if tag == "key":
            name = _plain(content)
        elif not tag.startswith("/"):
            members[name] = _read(tokens, tag, content)
    raise ValueError(INCOMPLETE)


def _read_array(tokens: Iterator[tuple[str, str]]) -> list[Any]:
    items: list[Any] = []
    for tag, content in tokens:
        if tag == "/array":
            return items
        if not tag.startswith("/"):
            items.append(_read(tokens, tag, content))
    raise ValueError(INCOMPLETE)


def _value(kind: str, text: str) -> Any:
    if kind == "integer":
        return int(text, 16 if text.lower().lstrip("-+").startswith("0x") else 10)
    if kind == "real":
        return float(text)
    if kind in ("true", "false"):
        return kind == "true"
    return _of_data(text) if kind == "data" else text


def _of_data(text: str) -> str:
    """Return the text of a data element; older drivers write names as data."""
    import binascii

    try:
        return binascii.a2b_base64(text).decode("ascii").rstrip("\0")
    except ValueError:  # not text
        return "".join(text.split())


def _plain(text: str) -> str:
    for written, meant in _ENTITIES:
        text = text.replace(written, meant)
    return text


def _of_tree(text: str) -> list[dict[str, Any]]:
    """Entries from lines like ``| "name" = value`` under ``+-o AGXAccelerator <class …>``.

    Without such a heading, a repeated name begins the next entry.
    """
    dictionaries: list[dict[str, Any]] = []
    entry: dict[str, Any] = {}
    for line in text.splitlines():
        line = line.strip(" |\t")
        if line.startswith("+-o "):
            entry = {"IORegistryEntryName": line[4:]}
            continue
        name, sign, value = line.partition('" = ')
        if not sign or not name.startswith('"'):
            continue
        name, value = name[1:], value.strip()
        if name in entry:
            entry = {}
        if name != "PerformanceStatistics":
            entry[name] = int(value) if value.isdigit() else value.strip('"<>')
        elif value.startswith("{") and value.endswith("}"):
            entry[name] = _numbers(value)
            dictionaries.append(entry)
    return dictionaries


def _numbers(text: str) -> dict[str, float]:
    """Return the numbers in ``{"a"=1,"b"={"c"=2},"d"="text"}``; for repeated names, the first."""
    numbers: dict[str, float] = {}
    parts = text.split('"')
    for name, after in zip(parts[1::2], parts[2::2], strict=False):
        if not after.startswith("="):
            continue
        end = 1
        while after[end : end + 1] in "-.0123456789" and end < len(after):
            end += 1
        try:
            numbers.setdefault(name, float(after[1:end]))
        except ValueError:
            continue  # a text, a list or a boolean
    return numbers
