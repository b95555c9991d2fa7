"""Names of registries: a registry is a project whose name begins with `wandb-registry-`, as W&B's do."""

from __future__ import annotations

import re
from typing import Final

PREFIX: Final = "wandb-registry-"
MODELS: Final = "model"
"""The registry of the models that MLflow's clients register, and of `run.link_model()`."""
MAX_REGISTRY_NAME: Final = 100
REGISTRY_NAME_ALLOWED: Final = "1 to 100 letters, digits, spaces and . _ -, beginning with a letter or digit"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_. \-]{0,99}")


def is_registry(project: str) -> bool:
    """Return whether a project of this name is a registry."""
    return project.startswith(PREFIX)


def registry_name(project: str) -> str:
    """Return the name of the registry that a project is.

    Example:
        >>> registry_name("wandb-registry-model")
        'model'
    """
    return project.removeprefix(PREFIX)


def project_of_registry(name: str) -> str:
    """Return the name of the project that a registry is."""
    return name if name.startswith(PREFIX) else PREFIX + name


def checked_registry_name(name: str) -> str:
    """Return the name, or raise ValueError if no registry can have it."""
    if not _NAME.fullmatch(name) or name.endswith(" "):
        raise ValueError(f"invalid name {name[:60]!r} of a registry; expected {REGISTRY_NAME_ALLOWED}")
    return name
