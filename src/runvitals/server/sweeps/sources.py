"""The configurations of sweeps as they are stored: the text of the client, and JSON."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

import yaml

from runvitals.model.hidden_characters import without_hidden_characters
from runvitals.model.limits import DEPTH
from runvitals.server.sweeps.configuration import (
    InvalidConfiguration,
    SweepConfiguration,
    parse_configuration,
)

MAX_CHARACTERS: Final = 256 * 1024
_MAX_JSON: Final = 1024 * 1024
_MAX_DIGITS: Final = 100
_MAX_NAME: Final = 256
_MAX_EVENTS: Final = 50_000
"""Of YAML: values, keys, and beginnings and ends of lists and maps. Each takes some 15 µs."""
_NUMBERS: Final = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


class Source(NamedTuple):
    """A valid configuration. `yaml`, `json`: as it is stored."""

    yaml: str
    json: str
    configuration: SweepConfiguration


def from_yaml(text: str) -> Source:
    """Read a configuration from YAML, or from JSON, which is YAML.

    Raises:
        InvalidConfiguration: it is none.
    """
    if len(text) > MAX_CHARACTERS:
        raise InvalidConfiguration([f"{len(text):,} characters; expected at most {MAX_CHARACTERS:,}"])
    try:
        _check_events(text)
        return _source(text, yaml.load(text, Loader=_Loader))
    except (yaml.YAMLError, ValueError) as error:
        if isinstance(error, InvalidConfiguration):
            raise
        raise InvalidConfiguration([f"not YAML: {' '.join(str(error).split())[:200]}"]) from None


def from_json(sent: object) -> Source:
    """Return the source of a configuration sent as JSON, or raise InvalidConfiguration."""
    source = _source("", sent, MAX_CHARACTERS)
    return source._replace(yaml=yaml.safe_dump(sent, sort_keys=False))


def _source(text: str, sent: Any, most: int = _MAX_JSON) -> Source:
    if _is_deeper(sent, DEPTH):
        raise InvalidConfiguration([f"nested too deeply; expected at most {DEPTH} levels"])
    configuration = parse_configuration(sent)
    _check_name(configuration.name or "")
    try:
        encoded = json.dumps(sent, allow_nan=False)
        json.dumps(sent, ensure_ascii=False).encode()
    except (TypeError, ValueError):  # a number as a key, NaN, half of a surrogate pair
        problem = "expected texts, finite numbers, true, false, lists and objects only"
        raise InvalidConfiguration([problem]) from None
    if len(encoded) > most:
        raise InvalidConfiguration([f"{len(encoded):,} characters as JSON; expected at most {most:,}"])
    return Source(text, encoded, configuration)


def _check_name(name: str) -> None:
    if len(name) > _MAX_NAME:
        raise InvalidConfiguration([f"name: {len(name):,} characters; expected at most {_MAX_NAME}"])
    try:
        without_hidden_characters("name", name)
    except ValueError as error:
        raise InvalidConfiguration([str(error)]) from None


def _is_deeper(value: Any, levels: int) -> bool:
    """Return whether lists and objects are nested more deeply."""
    inside = [value]
    for _ in range(levels):
        inside = [
            item
            for outer in inside
            if isinstance(outer, (dict, list))
            for item in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return any(isinstance(item, (dict, list)) for item in inside)


def _check_events(text: str) -> None:
    """Raise unless YAML can be read in a short time.

    Raises:
        InvalidConfiguration: it is nested too deeply.
        yaml.YAMLError: it is none, too much, or has aliases, of which a small text could make a huge value.
    """
    level = 0
    for number, event in enumerate(yaml.parse(text, Loader=_Loader)):
        if isinstance(event, yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not supported")
        if number >= _MAX_EVENTS:
            raise yaml.YAMLError(f"more than {_MAX_EVENTS:,} keys, values, lists and maps")
        level += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if level > DEPTH:
            raise InvalidConfiguration([f"nested too deeply; expected at most {DEPTH} levels"])


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc] # PyYAML has no types
    """Reads plain values; by libyaml, which takes a twentieth of the time."""

    def construct_scalar(self, node: Any) -> Any:
        if node.tag in _NUMBERS and len(node.value) > _MAX_DIGITS:
            # `1:2:3` is a number to base 60, which takes a time that grows with the square of its length.
            raise yaml.YAMLError(f"a number of {len(node.value):,} digits; expected at most {_MAX_DIGITS}")
        return super().construct_scalar(node)
