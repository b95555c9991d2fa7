"""Functions of W&B's package that are more than a name for one of ours."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from enum import Enum
from typing import Any

from runvitals.base import stored_keys
from runvitals.errors import KeyRejected
from runvitals.monitoring.settings.messages import notify
from runvitals.monitoring.settings.settings import SETTINGS
from runvitals.sdk.start import current_run, resolve_settings

_ID_CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


class AlertLevel(str, Enum):
    """The levels of `alert`, as W&B spells them."""

    INFO = "INFO"
    WARN = "WARN"
    ERROR = "ERROR"


def login(key: str | None = None, host: str | None = None, **others: Any) -> bool:
    """Store the key for the server, as `runvitals login` does.

    Args:
        key: the key. Without one, nothing is asked and nothing is stored.
        host: the server's URL; default: the setting `server`, else `WANDB_BASE_URL`.
        others: further arguments of `wandb.login`, which have no effect here.

    Returns:
        Whether runs can be delivered: there is a key for the server, or no server is set.

    Raises:
        KeyRejected: the server does not accept the key (a ValueError).
        ValueError: a key without a server.
        OSError: the server could not be reached.
    """
    server = SETTINGS["server"].parse(host, "login()") if host else resolve_settings({})["server"]
    if server is None:
        if key is not None:
            raise ValueError("login(): a key, but no server; expected host, or RUNVITALS_SERVER")
        return True
    if key is not None:
        try:
            stored_keys.check(server, key)
        except ValueError as error:
            raise KeyRejected(str(error)) from None
        stored_keys.save(server, key, os.environ)
    has_key = stored_keys.token(server, os.environ) is not None
    if not has_key:
        notify(f"there is no key for {server}; `runvitals login {server}` stores one")
    return has_key


def pin_config_keys(keys: Any = None) -> None:
    """Do nothing: the columns of a list of runs are chosen on the page."""


def setup(settings: Any = None) -> None:
    """Do nothing: nothing has to be started before `init`."""


def require(*names: str, **others: Any) -> None:
    """Do nothing: `wandb.require` turns features of W&B's own package on."""


def teardown(exit_code: int | None = None) -> None:
    """Finish the open run, if there is one."""
    run = current_run()
    if run is not None:
        run.finish(exit_code)


def join(exit_code: int | None = None) -> None:
    """Finish the open run, if there is one; an old name of `finish`."""
    teardown(exit_code)


def mark_preempting() -> None:
    """Do nothing: the state of a run whose process was ended is known from its signal."""


def visualize(id: str, value: Any) -> Any:
    """Return the table of a chart that W&B's users have specified; see `runvitals.plot.visualize`."""
    from runvitals.sdk.media import charts

    return charts.visualize(id, value)


def sagemaker_auth(
    overrides: Mapping[str, str] | None = None, path: str = ".", api_key: str | None = None
) -> None:
    """Write the server and its key to `secrets.env` in a folder of sources that a job takes with it.

    The job's script reads them from its environment, as `WANDB_BASE_URL` and `WANDB_API_KEY`.

    Args:
        overrides: further variables.
        path: the folder.
        api_key: the key; default: the one that `runvitals login` has stored.

    Raises:
        ValueError: no server is set, or there is no key for it.
        OSError: the file cannot be written.
    """
    server = resolve_settings({})["server"]
    key = api_key or (stored_keys.token(server, os.environ) if server else None)
    if server is None or key is None:
        raise ValueError("sagemaker_auth(): no server or no key for it; `runvitals login URL` sets both")
    values = {"WANDB_BASE_URL": server, "WANDB_API_KEY": key, **(overrides or {})}
    descriptor = os.open(os.path.join(path, "secrets.env"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.writelines(f"{name}={value}\n" for name, value in values.items())


def make_artifact_name_safe(name: str) -> str:
    """Return a text as the name of an artifact: other characters become `_`, at most 128 are kept.

    Example:
        >>> make_artifact_name_safe("a b/c")
        'a_b_c'
    """
    safe = re.sub(r"[^a-zA-Z0-9_\-.]", "_", name)
    return safe if len(safe) <= 128 else f"{safe[:63]}..{safe[-63:]}"


def generate_id(length: int = 8) -> str:
    """Return a random run id."""
    return "".join(secrets.choice(_ID_CHARACTERS) for _ in range(length))


def termlog(string: str = "", newline: bool = True, repeat: bool = True, prefix: bool = True) -> None:
    """Print a message to stderr, as messages of runvitals are printed."""
    notify(string)


def termwarn(string: str, newline: bool = True, repeat: bool = True, prefix: bool = True) -> None:
    """Print a warning to stderr."""
    notify(f"warning: {string}")


def termerror(string: str, newline: bool = True, repeat: bool = True, prefix: bool = True) -> None:
    """Print an error to stderr."""
    notify(f"error: {string}")


class _Util:
    """`wandb.util`: only what trainings use."""

    generate_id = staticmethod(generate_id)
    make_artifact_name_safe = staticmethod(make_artifact_name_safe)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"runvitals does not have wandb.util.{name}")


util = _Util()
