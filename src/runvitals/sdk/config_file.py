"""Reads hyper-parameters, and configurations of sweeps, from YAML and JSON files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any


def read_config(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the hyper-parameters in a file; of entries `{desc, value}`, as W&B has them, the values.

    Raises:
        ValueError: see `read_mapping`.
        OSError: it cannot be read.
    """
    entries = read_mapping(path, "names and values")
    return {
        name: entry["value"] if isinstance(entry, Mapping) and set(entry) in _OF_WANDB else entry
        for name, entry in entries.items()
        if name != "wandb_version"
    }


_OF_WANDB = ({"value"}, {"desc", "value"})
"""The keys of an entry in W&B's `config-defaults.yaml`."""


def read_mapping(path: str | os.PathLike[str], expected: str) -> Mapping[str, Any]:
    """Return the mapping in a file: JSON by its ending, otherwise YAML.

    Args:
        expected: what it should have, for the error.

    Raises:
        ValueError: it is not JSON or YAML, no mapping, or PyYAML is not installed.
        OSError: it cannot be read.
    """
    name = os.fspath(path)
    with open(name, encoding="utf-8") as file:
        text = file.read()
    try:
        value = json.loads(text) if name.endswith(".json") else _yaml(name, text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} is not valid: {' '.join(str(error).split())[:300]}") from None
    if not isinstance(value, Mapping):
        raise ValueError(f"{name}: expected {expected}")
    return value


def _yaml(name: str, text: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise ValueError("YAML needs PyYAML (pip install pyyaml); JSON works without") from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
