"""The definition of a setting: name, validation, and who may set it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runvitals.base.terminal_text import inert
from runvitals.errors import UsageError

# Settings that an untrusted project file may change: they name no server, team, path, command or regular
# expression, and cause nothing to be sent that would not be sent anyway.
_HARMLESS = frozenset((
    "project", "name", "group", "job_type", "tags", "notes", "resume", "mode", "sampling_interval",
    "process_tree", "gpu_ids", "collectors", "labels", "console", "quiet", "finish_timeout",
    "delivery_timeout",
))  # fmt: skip
# The values that it may set them to, where not any: what a command prints may hold secrets.
HARMLESS_VALUES: dict[str, tuple[object, ...]] = {"mode": ("offline", "disabled"), "console": (False,)}


_MAX_SHOWN_LENGTH = 500
_warned: set[str] = set()


class SettingError(UsageError, ValueError):
    """Invalid setting. The message names the setting, where it was set, the value, and what is expected."""


class Setting:
    """The definition of a setting.

    Args:
        name: the setting's name.
        default: value if it is set nowhere.
        check: converts a given value (from Python, TOML or an environment variable) to its proper type;
            raises ValueError or TypeError for an invalid one.
        allowed: describes the valid values, for error messages and the reference.
        text: what the setting does.
        of_source: concerns a single source, and is recorded only if it is set.
        hide: redacts secrets in a value before it is shown or recorded.
        fallback: environment variable of another tool that counts if nothing sets the setting.
        mend: makes an invalid value valid, with a warning: a name must not end a training.
    """

    __slots__ = ("allowed", "check", "default", "fallback", "hide", "mend", "name", "of_source", "text")

    def __init__(
        self,
        name: str,
        default: Any,
        check: Callable[[Any], Any],
        allowed: str,
        text: str,
        of_source: bool = False,
        hide: Callable[[Any], Any] | None = None,
        fallback: str = "",
        mend: Callable[[Any], Any] | None = None,
    ) -> None:
        self.name = name
        self.default = default
        self.check = check
        self.allowed = allowed
        self.text = text
        self.of_source = of_source
        self.hide = hide
        self.fallback = fallback
        self.mend = mend

    def redact(self, value: Any) -> Any:
        """Return the value with secrets redacted."""
        return value if self.hide is None or not value else self.hide(value)

    def is_harmless(self, value: Any) -> bool:
        """Return whether an untrusted project file may set this. It may turn things off, but not on."""
        return self.name in _HARMLESS and value in HARMLESS_VALUES.get(self.name, (value,))

    @property
    def variable(self) -> str:
        """The environment variable of this setting."""
        return f"RUNVITALS_{self.name.upper()}"

    def parse(self, value: Any, where: str) -> Any:
        """Return the validated value, or what `mend` makes of it; `where` says where it was set.

        Raises:
            SettingError: an invalid value of a setting without `mend`.
        """
        try:
            return self.parse_strictly(value, where)
        except SettingError:
            if self.mend is None:
                raise
        from runvitals.monitoring.environment import redaction

        mended = self.check(self.mend(redaction.entries(value)))
        _warn(f"{self._problem(value, where)}: {mended} is used instead; expected {self.allowed}")
        return mended

    def parse_strictly(self, value: Any, where: str) -> Any:
        """Return the validated value; for commands, which end no training if they fail.

        Raises:
            SettingError: invalid value.
        """
        try:
            return self.check(value)
        except (ValueError, TypeError, OverflowError, RecursionError):
            raise SettingError(f"{self._problem(value, where)}: expected {self.allowed}") from None

    def _problem(self, value: Any, where: str) -> str:
        return f"invalid setting {self.name} = {self._shown(value)} ({inert(where)})"

    def _shown(self, value: Any) -> str:
        from runvitals.monitoring.environment import redaction

        text = repr(redaction.entries(self.redact(value)))
        return text if len(text) <= _MAX_SHOWN_LENGTH else f"{text[:_MAX_SHOWN_LENGTH]}…"


def _warn(text: str) -> None:
    """Print a warning once: settings are resolved several times."""
    from runvitals.monitoring.settings.messages import notify

    if text not in _warned:
        _warned.add(text)
        notify(text)
