"""The errors that W&B's package has, under its names, for `except wandb.errors.CommError`.

Errors of ours are also errors of these classes where W&B's package raises them in their place.

Example:
    >>> import runvitals as wandb
    >>> try:
    ...     wandb.log({"loss": 0.5})
    ... except wandb.errors.UsageError:
    ...     print("no run is open")
    no run is open
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


class Error(Exception):
    """Any error of the functions that W&B's package has, too."""

    @property
    def message(self) -> str:
        """The text."""
        return str(self)


class CommError(Error):
    """A server rejected a request, has no such thing, or is unreachable."""


class AuthenticationError(CommError):
    """A server does not accept a key."""


class UsageError(Error):
    """A call that is not possible: no run is open, or a setting is invalid."""


class UnsupportedError(UsageError):
    """An argument that W&B's package has and ours has not."""


class NotOpen(UsageError, RuntimeError):
    """No run is open in this process, or this one is finished."""


class NotOpenAttribute(NotOpen, AttributeError):
    """No run is open, so the package has no `config` and no `summary`: `hasattr` answers False."""


class UnsupportedArgument(UnsupportedError, TypeError):
    """An argument that is not supported. The message says what to use instead."""


class KeyRejected(AuthenticationError, ValueError):
    """A server does not accept a key, or is no server of runvitals."""


def __getattr__(name: str) -> ModuleType:
    if name == "term":
        return import_module("runvitals.errors.term")
    raise AttributeError(f"module 'runvitals.errors' has no attribute {name!r}")
