"""The configurations of sweeps as they are stored: the text of the client, and JSON."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

import yaml

from runvitals.model.limits import DEPTH
from runvitals.server.sweeps.configuration import (
    InvalidConfiguration,
    SweepConfiguration,
    parse_configuration,
)

MAX_CHARACTERS: Final = 256 * 1024
_MAX_JSON: Final = 1024 * 1024
_MAX_DIGITS: Final = 100
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
        return _source(text, yaml.load(text, Loader=_Loader))
    except RecursionError:
        raise InvalidConfiguration([f"nested too deeply; expected at most {DEPTH} levels"]) from None
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
    try:
        encoded = json.dumps(sent, allow_nan=False)
        json.dumps(sent, ensure_ascii=False).encode()
    except (TypeError, ValueError):  # a number as a key, NaN, half of a surrogate pair
        problem = "expected texts, finite numbers, true, false, lists and objects only"
        raise InvalidConfiguration([problem]) from None
    if len(encoded) > most:
        raise InvalidConfiguration([f"{len(encoded):,} characters as JSON; expected at most {most:,}"])
    return Source(text, encoded, configuration)


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


class _Loader(yaml.SafeLoader):  # type: ignore[misc] # PyYAML has no types
    """Reads plain values. Without aliases, of which a small text could make a huge value."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not supported")
        return super().compose_node(parent, index)

    def construct_scalar(self, node: Any) -> Any:
        if node.tag in _NUMBERS and len(node.value) > _MAX_DIGITS:
            # `1:2:3` is a number to base 60, which takes a time that grows with the square of its length.
            raise yaml.YAMLError(f"a number of {len(node.value):,} digits; expected at most {_MAX_DIGITS}")
        return super().construct_scalar(node)
