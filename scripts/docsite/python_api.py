"""The reference of the Python API: signatures and docstrings of the public names, read from the sources."""

from __future__ import annotations

import inspect
import logging
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe

MODULES = {
    "runvitals": "For training scripts and notebooks.",
    "runvitals.query": "Reads the runs of this machine.",
    "runvitals.client": "Reads runs from a server.",
    "runvitals.callbacks": "Callbacks for Lightning, Transformers and Keras.",
    "runvitals.mlflow": "Records MLflow's system metrics with the collectors of runvitals.",
    "runvitals.relay.destination": "The interface of a custom destination.",
    "runvitals.relay.batch": "The data that a destination receives.",
}
"""The public modules, with their descriptions."""
_FROM_MLFLOW = (
    "enable_system_metrics_logging",
    "disable_system_metrics_logging",
    "set_system_metrics_sampling_interval",
    "set_system_metrics_samples_before_logging",
    "set_system_metrics_node_id",
    "start_run",
)
_INTRODUCTION = """\
# Python API

The public names with their signatures, generated from the sources. Names that are not listed here may
change in any release.
"""
Member = Any  # griffe's objects and aliases share an interface that its types do not describe


def page(sources: Path) -> str:
    """The page in Markdown."""
    logging.getLogger("griffe").setLevel(logging.ERROR)  # it warns of a line for several parameters
    package = griffe.load("runvitals", search_paths=[str(sources)], docstring_parser="google")
    lines, described = [_INTRODUCTION], set()
    for module, text in MODULES.items():
        lines += [f"## {module}\n", f"{text}\n"]
        documented = package if module == "runvitals" else package[module.removeprefix("runvitals.")]
        for name in public_names(documented):
            member = _resolved(documented.members[name])
            if member.path not in described:
                described.add(member.path)
                lines += _of_name(f"{module}.{name}", member)
    return "\n".join(lines) + "\n"


def public_names(module: Member) -> list[str]:
    """The names in `__all__`; without it those of `runvitals.mlflow`, or the classes of the module."""
    if module.exports:
        return [str(name) for name in module.exports]
    if module.path == "runvitals.mlflow":
        return list(_FROM_MLFLOW)
    return [
        name
        for name, member in module.members.items()
        if not name.startswith("_") and not member.is_alias and member.is_class
    ]


def _resolved(member: Member) -> Member:
    return member.final_target if member.is_alias else member


def _of_name(path: str, member: Member) -> Iterator[str]:
    yield f"### {path}\n"
    yield from _described(path.rsplit(".", 1)[1], member)
    if member.is_class:
        for name, inherited in member.all_members.items():
            part = _resolved(inherited)
            if not name.startswith("_") and part.docstring:
                yield f"#### {path.rsplit('.', 1)[1]}.{name}\n"
                yield from _described(name, part)


def _described(name: str, member: Member) -> Iterator[str]:
    signature = _signature(name, member)
    if signature:
        yield f"```python\n{signature}\n```\n"
    if member.docstring:
        for section in member.docstring.parsed:
            yield from _of_section(section)


def _signature(name: str, member: Member) -> str:
    """The signature on one line if it fits, else with one parameter per line."""
    if member.is_attribute:
        return f"{name}: {member.annotation}" if member.annotation else ""
    function = member
    if member.is_class:
        function = member.all_members.get("__init__")
        if function is None:
            bases = ", ".join(map(str, member.bases))
            return f"class {name}({bases})" if bases else f"class {name}"
        function = _resolved(function)
    parameters = [part for part in _parameters(function) if part not in ("self", "cls")]
    returns = f" -> {function.returns}" if function.returns and not member.is_class else ""
    start = f"class {name}" if member.is_class else name
    line = f"{start}({', '.join(parameters)}){returns}"
    if len(line) <= 90:
        return line
    return f"{start}(\n" + "".join(f"    {part},\n" for part in parameters) + f"){returns}"


def _parameters(function: Member) -> Iterator[str]:
    starred = False
    for parameter in function.parameters:
        kind = parameter.kind
        if kind is griffe.ParameterKind.keyword_only and not starred:
            yield "*"
            starred = True
        text = {
            griffe.ParameterKind.var_positional: "*",
            griffe.ParameterKind.var_keyword: "**",
        }.get(kind, "") + parameter.name
        starred = starred or kind is griffe.ParameterKind.var_positional
        if parameter.annotation is not None:
            text += f": {parameter.annotation}"
        if parameter.default is not None and not text.startswith("*"):
            text += f" = {parameter.default}" if parameter.annotation is not None else f"={parameter.default}"
        yield text


def _of_section(section: Member) -> Iterator[str]:
    kind, value = section.kind.value, section.value
    if kind == "text":
        yield f"{_prose(value)}\n"
    elif kind in ("parameters", "attributes", "raises", "returns", "yields"):
        yield f"**{kind.capitalize()}**\n"
        for item in value:
            yield f"- {_item(item)}"
        yield ""
    elif kind == "examples":
        yield _code("\n\n".join(text for _, text in value))
    elif kind == "admonition":
        yield _code(value.contents) if ">>>" in value.contents else f"{_prose(value.contents)}\n"


def _item(item: Member) -> str:
    annotation = str(item.annotation) if item.annotation else ""
    name = getattr(item, "name", "") or annotation
    text = " ".join(_escaped(item.description).split())
    return f"`{name}`: {text}" if name else text


def _code(text: str) -> str:
    return f"```python\n{inspect.cleandoc(text)}\n```\n"


def _prose(text: str) -> str:
    """Prose, and indented code as it is."""
    blocks = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(
        _code(textwrap.dedent(block)).rstrip() if block.startswith(("    ", ">>>")) else _escaped(block)
        for block in blocks
    )


def _escaped(text: str) -> str:
    """Angle brackets as text, but within code."""
    parts = text.split("`")
    return "`".join(part.replace("<", "&lt;") if index % 2 == 0 else part for index, part in enumerate(parts))
