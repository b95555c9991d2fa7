"""Parses the output of `nvidia-smi -q -x`, one XML document for all GPUs, into fields by element name.

Not an XML parser, because process names are not always escaped, messages are printed before and after the
document, and four fifths of it (the supported clocks) are skipped. Entities are not expanded, nothing is
fetched.
"""

from __future__ import annotations

from runvitals.monitoring.collectors.plumbing.plain_text import first_lines

_BEGIN, _END = "<nvidia_smi_log", "</nvidia_smi_log>"
# Skipped elements: process names may not be well-formed; the others are unused, and most of the document.
_SKIPPED = (
    "process_name", "supported_clocks", "accounted_processes", "max_clocks", "applications_clocks",
    "default_applications_clocks", "bar1_memory_usage", "cc_protected_memory_usage", "aggregate", "fabric",
    "retired_pages", "inforom_version", "encoder_stats", "fbc_stats", "power_profiles",
    "module_power_readings",
)  # fmt: skip
_MAX_LETTERS, _DEEPEST = 200, 32
_PARTS = {"mig_device": "slices", "process_info": "processes"}


class SmiGpuLog:
    """One GPU of the document.

    Its fields by path (``fb_memory_usage.used``), and those of its slices and processes. ``lists_processes``:
    whether the document has a list of them, which may be empty.
    """

    __slots__ = ("fields", "lists_processes", "processes", "slices")

    def __init__(self) -> None:
        self.fields: dict[str, str] = {}
        self.lists_processes = False
        self.slices: list[dict[str, str]] = []
        self.processes: list[dict[str, str]] = []


class SmiLog:
    """The document: its top-level fields (``driver_version``), and the GPUs in the order of the PCI bus."""

    __slots__ = ("fields", "gpus")

    def __init__(self) -> None:
        self.fields: dict[str, str] = {}
        self.gpus: list[SmiGpuLog] = []


def read(output: bytes) -> SmiLog:
    """Parse the last complete document in the output.

    Raises:
        ValueError: there is none; the text includes the first lines of the output.

    Example:
        >>> log = read(b"<nvidia_smi_log><gpu><temperature><gpu_temp>41 C</gpu_temp></temperature></gpu>"
        ...            b"</nvidia_smi_log>")
        >>> log.gpus[0].fields["temperature.gpu_temp"]
        '41 C'
    """
    text = output.decode("utf-8", "replace")
    end = text.rfind(_END)
    start = text.rfind(_BEGIN, 0, max(end, 0))
    if start < 0:
        what = "the document is incomplete" if _BEGIN in text else "no XML document"
        raise ValueError(f"invalid nvidia-smi output: {what}; it printed {first_lines(output)}")
    text = text[start:end]
    for tag in _SKIPPED:
        text = _without(text, tag)
    return _read(text)


def _without(text: str, tag: str) -> str:
    """Return the text without all elements of this name."""
    begin, end = f"<{tag}>", f"</{tag}>"
    parts = text.split(begin)
    if len(parts) == 1:
        return text
    return parts[0] + "".join(part.partition(end)[2] for part in parts[1:])


def _read(text: str) -> SmiLog:
    log = SmiLog()
    fields, depth = log.fields, 1  # target of the fields, and depth of its element
    path: list[str] = []
    for mark in text.split("<")[1:]:
        tag, _, after = mark.partition(">")
        if tag[:1] == "/":
            if path:
                path.pop()
            if len(path) == 1:
                fields, depth = log.fields, 1
            elif len(path) < depth and log.gpus:
                fields, depth = log.gpus[-1].fields, 2
            continue
        if log.gpus and tag.rstrip("/ ") == "processes":
            log.gpus[-1].lists_processes = True
        if tag[:1] in ("?", "!") or tag[-1:] == "/" or not tag.strip():
            continue
        name = tag.split()[0]
        path.append(name)
        if len(path) > _DEEPEST:
            raise ValueError("the document's elements are nested too deeply")
        if len(path) == 2 and name == "gpu":
            log.gpus.append(SmiGpuLog())
            fields, depth = log.gpus[-1].fields, 2
            fields["id"] = tag.partition('id="')[2].partition('"')[0]
        elif log.gpus and name in _PARTS:
            part: dict[str, str] = {}
            getattr(log.gpus[-1], _PARTS[name]).append(part)
            fields, depth = part, len(path)
        elif value := after.strip():
            fields[".".join(path[depth:])] = _plain(value)
    return log


def _plain(value: str) -> str:
    """Shorten, unescape, and replace control characters."""
    value = value[:_MAX_LETTERS]
    if "&" not in value and value.isprintable():
        return value
    value = value.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return "".join(letter if letter.isprintable() else " " for letter in value)
