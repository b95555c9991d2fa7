"""Folders that only the user may read: the one of the configuration, and new ones."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def config_dir(environ: Mapping[str, str]) -> str:
    """Return the folder of the user's configuration: `runvitals` in `XDG_CONFIG_HOME` or `~/.config`.

    It is never in the current directory, even without a valid `HOME`: that could be a cloned repository with
    a configuration folder of its own.
    """
    home = environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(home):
        home = os.path.expanduser("~/.config")
    return os.path.join(os.sep, home, "runvitals")


def make_private(folder: str) -> None:
    """Create a folder and its missing parents with mode 0700, regardless of the umask.

    Raises:
        OSError: it could not be created.
    """
    parent = os.path.dirname(folder)
    if parent and not os.path.exists(parent):
        make_private(parent)
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise
