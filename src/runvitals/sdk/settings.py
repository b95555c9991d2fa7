"""Settings: what they are called, what they may be, and where they come from.

Precedence: arguments > `RUNVITALS_*` environment > project file (`runvitals.toml` here or in a folder above)
> user file (`runvitals/settings.toml` in the user's configuration home). `docs/settings.md` lists them all.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from runvitals.journal import paths
from runvitals.journal.jsontext import loads
from runvitals.sdk import source_settings

MODES = ("online", "offline", "disabled")
RESUMES = ("allow", "must", "never")
PROJECT_FILE = "runvitals.toml"


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
        except (ValueError, TypeError):
            raise SettingError(
                f"{self.name} = {self.shown(value)!r} ({where}) is not allowed: it must be {self.allowed}"
            ) from None


def _number(low: float, high: float) -> Callable[[Any], float]:
    def check(value: Any) -> float:
        if isinstance(value, bool):
            raise TypeError
        number = float(value)
        if not low <= number <= high:
            raise ValueError
        return number

    return check


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off"):
        return False
    raise ValueError


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _name(value: Any) -> str:
    text = _text(value).strip()
    if not text or len(text) > 128 or any(ord(c) < 32 or c in "/\\" for c in text):
        raise ValueError
    return text


def _run_id(value: Any) -> str:
    return paths.check_run_id(_text(value))


def _one_of(*words: str) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if value not in words:
            raise ValueError
        return str(value)

    return check


def _listed(item: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    """A list; as text either JSON or items with commas between them."""

    def check(value: Any) -> list[Any]:
        if isinstance(value, str):
            value = (
                loads(value)
                if value.lstrip().startswith("[")
                else [part.strip() for part in value.split(",")]
            )
        if not isinstance(value, (list, tuple)):
            raise TypeError
        return [item(part) for part in value if part != ""]

    return check


def _index(value: Any) -> int:
    if isinstance(value, (bool, float)) or int(value) < 0:
        raise ValueError
    return int(value)


def _absolute(value: Any) -> str:
    path = os.path.expanduser(_text(value))
    if not os.path.isabs(path):
        raise ValueError
    return path


def _server(value: Any) -> str:
    """A server's address. No password in it: it is written into the run's folder."""
    text = _text(value).strip().rstrip("/")
    scheme, mark, rest = text.partition("://")
    host = rest.partition("/")[0]
    if scheme not in ("http", "https") or not mark or not host or "@" in host or any(c <= " " for c in text):
        raise ValueError
    return text


def _destination(value: Any) -> str:
    text = _text(value).strip()
    return _server(text) if text.startswith(("http:", "https:")) else _destination_name(text)


def _destination_name(text: str) -> str:
    """`NAME` or `NAME:ADDRESS`. As with a server, no password in a URL."""
    name = text.partition(":")[0]
    if not name or not name.isascii() or not name.replace("_", "").replace("-", "").isalnum():
        raise ValueError
    if "@" in text.partition("://")[2].partition("/")[0]:
        raise ValueError
    return text


def _labels(value: Any) -> dict[str, str]:
    if isinstance(value, str):
        value = loads(value) if value.lstrip().startswith("{") else _pairs(value)
    if not isinstance(value, Mapping):
        raise TypeError
    return {_name(key): str(text) for key, text in value.items()}


def _pairs(text: str) -> dict[str, str]:
    pairs = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not equals:
            raise ValueError
        pairs[key.strip()] = value.strip()
    return pairs


def _optional(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else check(value)


_NAME_ALLOWED = "1 to 128 characters without / \\ or control characters"
SETTINGS: dict[str, Setting] = {
    setting.name: setting
    for setting in (
        Setting("project", "default", _name, _NAME_ALLOWED, "Project the run belongs to."),
        Setting("name", None, _optional(_name), _NAME_ALLOWED, "What people call the run; default: its id."),
        Setting(
            "run_id",
            None,
            _optional(_run_id),
            "1 to 128 of A-Z a-z 0-9 _ . -, not beginning with a dot or a dash",
            "Id of the run. Processes with the same id are one run, on one host or on many.",
        ),
        Setting(
            "resume",
            "allow",
            _one_of(*RESUMES),
            f"one of {', '.join(RESUMES)}",
            "What to do when the id exists.",
        ),
        Setting("group", None, _optional(_name), _NAME_ALLOWED, "Runs of one experiment."),
        Setting("job_type", None, _optional(_name), _NAME_ALLOWED, "What the run does: train, eval …"),
        Setting(
            "tags",
            [],
            _listed(_name),
            "a list of texts, or texts with commas between them",
            "Words to find the run by.",
        ),
        Setting("notes", None, _optional(_text), "a text", "A longer description."),
        Setting("dir", None, _optional(_text), "a path", "Data folder; default: the user's data home."),
        Setting(
            "mode",
            "online",
            _one_of(*MODES),
            f"one of {', '.join(MODES)}",
            "`offline` delivers nothing; `disabled` does nothing at all.",
        ),
        Setting(
            "sampling_interval",
            1.0,
            _number(0.1, 3600.0),
            "a number of seconds from 0.1 to 3600",
            "Seconds between two samples.",
        ),
        Setting(
            "disk_paths",
            ["/"],
            _listed(_absolute),
            "absolute paths: a list, or with commas between them",
            "File systems whose use is recorded.",
        ),
        Setting(
            "process_tree",
            True,
            _flag,
            "true or false",
            "Count all descendants of the process, not just the process.",
        ),
        Setting(
            "gpu_ids",
            None,
            _optional(_listed(_index)),
            "indices from 0: a list, or with commas between them",
            "Record only these GPUs; default: all.",
        ),
        Setting(
            "collectors",
            ["all"],
            _listed(_text),
            "names of sources, `all`, or `-name` to leave one out; a list, or with commas between them",
            "Sources to ask.",
        ),
        Setting(
            "labels",
            {},
            _labels,
            "a table of texts, or key=value with commas between them",
            "Labels of this writer.",
        ),
        Setting(
            "host_root",
            "",
            lambda value: value and _absolute(value),
            "an absolute path",
            "Where the host's /proc, /sys and disks lie, in a container that mounts them.",
        ),
        Setting("console", False, _flag, "true or false", "`runvitals run`: keep what the command prints."),
        Setting("quiet", False, _flag, "true or false", "Say nothing on stderr but warnings."),
        Setting(
            "finish_timeout",
            5.0,
            _number(0.0, 600.0),
            "a number of seconds from 0 to 600",
            "How long `finish()` may wait for the last sample.",
        ),
        Setting(
            "server",
            None,
            _optional(_server),
            "http://host[:port] or https://…, without a password",
            "Server that the run is delivered to while it goes on; `runvitals login` keeps the token.",
        ),
        Setting(
            "destinations",
            [],
            _listed(_destination),
            "NAME, NAME:ADDRESS or a server's URL, without a password: a list, or with commas between them",
            "Where else the run is delivered to; docs/destinations.md.",
        ),
        Setting(
            "delivery_timeout",
            5.0,
            _number(0.0, 600.0),
            "a number of seconds from 0 to 600",
            "How long `finish()` may wait until all is delivered; the relay goes on in any case.",
        ),
        Setting(
            "openmetrics_endpoints",
            {},
            source_settings.endpoints,
            "a table of URLs (http, https, http+unix) by names of A-Z a-z 0-9 _ -, or name=URL with blanks"
            " between them",
            "Exporters of Prometheus or OpenMetrics text to read.",
            of_source=True,
            hide=source_settings.without_secrets,
        ),
        Setting(
            "openmetrics_filters",
            [],
            source_settings.filters,
            "a list of regular expressions, or a table of such with a table of expressions for labels",
            "What to keep of them: expressions are searched in `endpoint.metric`; all labels must match.",
            of_source=True,
        ),
        Setting(
            "openmetrics_headers",
            {},
            source_settings.headers,
            "a table of texts, or Name=value with blanks between them",
            "Headers for requests to exporters; their values are never recorded.",
            of_source=True,
            hide=source_settings.names_only,
        ),
        Setting(
            "dcgm_exporter",
            None,
            _optional(source_settings.url),
            "a URL (http, https, http+unix)",
            "DCGM exporter to read (`http://localhost:9400/metrics`), or a Prometheus that reads it"
            " (`http://prometheus:9090/api/v1/query?query=…`).",
            of_source=True,
            hide=source_settings.without_secrets,
        ),
        Setting(
            "neuron_monitor_config",
            None,
            _optional(source_settings.file),
            "the absolute path of a file that can be read",
            "neuron-monitor's configuration; default: our own.",
            of_source=True,
        ),
    )
}


class Settings:
    """Settings given in code. Only those named are set; the others come from the environment, the files, or
    their defaults.

    Example:
        >>> runvitals.init(settings=runvitals.Settings(sampling_interval=0.5, disk_paths=["/", "/data"]))

    Raises:
        SettingError: a name that does not exist, or a value that is not allowed.
    """

    def __init__(self, **values: Any) -> None:
        self.given = {
            name: find(name, "argument").parse(value, "argument")
            for name, value in values.items()
            if value is not None
        }

    def __repr__(self) -> str:
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in self.given.items())})"


def find(name: str, where: str) -> Setting:
    """The setting of that name.

    Raises:
        SettingError: there is none; the message names the one that was probably meant.
    """
    setting = SETTINGS.get(name)
    if setting is None:
        import difflib

        close = difflib.get_close_matches(name, SETTINGS, 1)
        hint = f"; did you mean {close[0]}?" if close else f"; there are {', '.join(SETTINGS)}"
        raise SettingError(f"there is no setting {name!r} ({where}){hint}")
    return setting


def resolve(given: Mapping[str, Any], environ: Mapping[str, str], cwd: str) -> dict[str, Any]:
    """Every setting's value, from the place with the highest precedence that sets it.

    Args:
        given: values from code, already checked (`Settings.given`).
        environ: the environment.
        cwd: where the search for a project file begins.

    Raises:
        SettingError: a wrong value or name, in whichever place.
    """
    return {name: value for name, (value, _) in trace(given, environ, cwd).items()}


def trace(given: Mapping[str, Any], environ: Mapping[str, str], cwd: str) -> dict[str, tuple[Any, str]]:
    """Like `resolve`, with the place that each value comes from: name → (value, place)."""
    values = {name: (setting.default, "default") for name, setting in SETTINGS.items()}
    for path in (user_file(environ), project_file(cwd)):
        if path is not None:
            values.update({name: (value, path) for name, value in _from_file(path).items()})
    for setting in SETTINGS.values():
        text = environ.get(setting.variable)
        if text:
            place = f"environment variable {setting.variable}"
            values[setting.name] = (setting.parse(text, place), place)
    values.update({name: (value, "argument") for name, value in given.items()})
    return values


def user_file(environ: Mapping[str, str]) -> str | None:
    """The user's settings file, if there is one."""
    home = environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    path = os.path.join(home, "runvitals", "settings.toml")
    return path if os.path.isfile(path) else None


def project_file(cwd: str) -> str | None:
    """The nearest `runvitals.toml` in `cwd` or a folder above it."""
    folder = os.path.abspath(cwd)
    while True:
        path = os.path.join(folder, PROJECT_FILE)
        if os.path.isfile(path):
            return path
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def _from_file(path: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        with open(path, "rb") as file:
            table = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise SettingError(f"{path} cannot be read: {error}") from None
    return {name: find(name, path).parse(value, path) for name, value in table.items()}
