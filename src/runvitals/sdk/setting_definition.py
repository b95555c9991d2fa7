"""One setting: its name, what it may be, and who may set it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# What a project file may set although somebody else may have written it: it names no server, no path, no
# command, and no regular expression, and has nothing sent that would not be sent without it.
_HARMLESS = frozenset((
    "project", "name", "group", "job_type", "tags", "notes", "resume", "mode", "sampling_interval",
    "process_tree", "gpu_ids", "collectors", "labels", "console", "quiet", "finish_timeout",
    "delivery_timeout",
))  # fmt: skip


class SettingError(ValueError):
    """A setting with a value that is not allowed. The message names the setting, where it was set, the value,
    and what is allowed.
    """


class Setting:
    """One setting: its name, default, meaning, and the function that checks a value given in any of the
    places.

    `check` takes the value as given (a Python value, a TOML value, or the text of an environment variable)
    and returns the value in its proper type; it raises ValueError or TypeError for one that is not allowed,
    and `allowed` says in words what is.

    `of_source` is for settings that concern a single source: they are recorded only where they are set.
    `hide` takes the secrets out of a value that is to be shown or recorded.
    """

    __slots__ = ("allowed", "check", "default", "hide", "name", "of_source", "text")

    def __init__(
        self,
        name: str,
        default: Any,
        check: Callable[[Any], Any],
        allowed: str,
        text: str,
        of_source: bool = False,
        hide: Callable[[Any], Any] | None = None,
    ) -> None:
        self.name = name
        self.default = default
        self.check = check
        self.allowed = allowed
        self.text = text
        self.of_source = of_source
        self.hide = hide

    def shown(self, value: Any) -> Any:
        """The value without what may be secret in it."""
        return value if self.hide is None or not value else self.hide(value)

    def is_harmless(self, value: Any) -> bool:
        """Whether a project file may set this without being trusted. It may keep a run from being delivered,
        but not have one delivered that the user wants to be kept here.
        """
        return self.name in _HARMLESS and not (self.name == "mode" and value == "online")

    @property
    def variable(self) -> str:
        """The environment variable of this setting."""
        return f"RUNVITALS_{self.name.upper()}"

    def parse(self, value: Any, where: str) -> Any:
        """The checked value.

        Raises:
            SettingError: not allowed; `where` is where it was set.
        """
        try:
            return self.check(value)
        except (ValueError, TypeError, OverflowError, RecursionError):
            from runvitals.environment import redaction

            shown = redaction.entries(self.shown(value))
            raise SettingError(
                f"{self.name} = {shown!r} ({where}) is not allowed: it must be {self.allowed}"
            ) from None
