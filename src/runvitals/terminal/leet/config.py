"""The settings of leet (`runvitals/leet.json`), and the saved layout of each project's screens."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from runvitals.base.private_folders import config_dir, make_private
from runvitals.terminal.leet.palette import HEAT_SCHEMES, LINE_SCHEMES

_FILE = "leet.json"
_MAX_BYTES = 1 << 20
_GRID = tuple(range(1, 10))


class LeetSetting(NamedTuple):
    """A setting: its name, the values that it may have, its default, and what it does."""

    name: str
    values: tuple[Any, ...]
    default: Any
    text: str


CHOICES: tuple[LeetSetting, ...] = (
    LeetSetting("startup", ("run", "list"), "run", "what opens first: the latest run, or the list of runs"),
    LeetSetting("line_colours", LINE_SCHEMES, "okabe-ito", "of lines; the first three suit colour-blindness"),
    LeetSetting("heat_colours", HEAT_SCHEMES, "viridis", "of heatmaps; viridis and cividis suit it too"),
    LeetSetting("guides", ("off", "dots", "lines"), "off", "marks at the labels of the y-axis"),
    LeetSetting("x_axis", ("steps", "time"), "steps", "the x-axis of metrics"),
    LeetSetting("metrics_columns", _GRID, 4, "columns of the grid of metrics"),
    LeetSetting("metrics_rows", _GRID, 3, "rows of the grid of metrics"),
    LeetSetting("system_columns", _GRID, 2, "columns of the grid of system metrics"),
    LeetSetting("system_rows", _GRID, 6, "rows of the grid of system metrics"),
    LeetSetting("media_columns", _GRID, 2, "columns of the grid of images"),
    LeetSetting("media_rows", _GRID, 1, "rows of the grid of images"),
    LeetSetting("tail_minutes", (1, 2, 5, 10, 30, 60), 10, "how much system metrics show of a running run"),
    LeetSetting("interval_seconds", (1, 2, 5, 10, 30), 1, "between two looks at a running run"),
    LeetSetting("images", ("auto", "kitty", "sixel", "blocks"), "auto", "how images are shown"),
)
"""All settings, in the order of the editor."""


class Config:
    """The settings. Unknown names and values in the file are ignored, and kept when it is written.

    Args:
        path: the path of the file.

    Raises:
        ValueError: the file is not a JSON object.
        OSError: it cannot be read.

    Example:
        >>> config = Config("/tmp/leet.json")
        >>> config["tail_minutes"]
        10
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._stored = _read(path)

    @classmethod
    def of_user(cls, environ: Mapping[str, str]) -> Config:
        """Return the configuration of the user."""
        return cls(os.path.join(config_dir(environ), _FILE))

    def __getitem__(self, name: str) -> Any:
        choice = next(choice for choice in CHOICES if choice.name == name)
        value = self._stored.get(name)
        return value if value in choice.values else choice.default

    def set(self, name: str, value: Any) -> None:
        """Change a setting, and write the file.

        Raises:
            ValueError: no such setting, or not one of its values.
            OSError: it cannot be written.
        """
        choice = next((choice for choice in CHOICES if choice.name == name), None)
        if choice is None:
            raise ValueError(
                f"no setting {name!r}; there are {', '.join(setting.name for setting in CHOICES)}"
            )
        valid = next((allowed for allowed in choice.values if str(allowed) == str(value)), None)
        if valid is None:
            raise ValueError(f"{name} is one of {', '.join(map(str, choice.values))}, not {value!r}")
        self._stored[name] = valid
        _write(self.path, self._stored)

    def next_value(self, name: str, by: int) -> Any:
        """Return the value after or before the present one."""
        choice = next(choice for choice in CHOICES if choice.name == name)
        return choice.values[(choice.values.index(self[name]) + by) % len(choice.values)]

    def as_dict(self) -> dict[str, Any]:
        """Return all settings and their values."""
        return {choice.name: self[choice.name] for choice in CHOICES}


class ProjectState:
    """The saved layout of the screens of a project's runs: filters, panes, grids.

    It is a convenience: a state that cannot be read or written is silently dropped.

    Args:
        folder: the folder with the files of all projects.
        project: its name.
    """

    def __init__(self, folder: str, project: str) -> None:
        name = hashlib.sha256(project.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        self._path = os.path.join(folder, f"{name}.json")

    @classmethod
    def of_user(cls, environ: Mapping[str, str], project: str) -> ProjectState:
        """Return the state of a project for the user."""
        home = environ.get("XDG_STATE_HOME", "")
        if not os.path.isabs(home):
            home = os.path.expanduser("~/.local/state")
        return cls(os.path.join(os.sep, home, "runvitals", "leet"), project)

    def read(self) -> dict[str, Any]:
        """Return the saved state; empty if there is none or it is unreadable."""
        try:
            return _read(self._path)
        except (OSError, ValueError):
            return {}

    def write(self, state: Mapping[str, Any]) -> None:
        """Save a state."""
        with suppress(OSError):
            _write(self._path, state)


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            values = json.loads(file.read(_MAX_BYTES))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ValueError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(values, dict):
        raise ValueError(f"{path} is not a JSON object")
    return values


def _write(path: str, values: Mapping[str, Any]) -> None:
    make_private(os.path.dirname(path))
    draft = f"{path}.{os.getpid()}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        json.dump(values, file, indent=1)
    os.replace(draft, path)
