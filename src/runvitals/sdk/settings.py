"""Settings: what they are called, what they may be, and where they come from.

Precedence: arguments > `RUNVITALS_*` environment > project file (`runvitals.toml` here or in a folder above)
> user file (`runvitals/settings.toml` in the user's configuration home). Of a project file that the user has
not trusted only what is harmless counts (`trust.py`). `docs/reference/settings.md` lists them all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from typing import Any

from runvitals.environment import launcher
from runvitals.journal import paths
from runvitals.journal.json_codec import loads
from runvitals.model import limits
from runvitals.sdk import source_settings, trust
from runvitals.sdk.setting_definition import Setting
from runvitals.sdk.setting_definition import SettingError as SettingError
from runvitals.sdk.settings_files import parsed, project_file, read, user_file

MODES = ("online", "offline", "disabled")
RESUMES = ("allow", "must", "never")


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
    # What is secret is hidden here and now: labels are written into every journal and shown to everybody.
    # One character more than a record holds: that it is too long is reported where it is recorded.
    texts = {_name(key): str(text)[: limits.TEXT_CHARACTERS + 1] for key, text in value.items()}
    labels: dict[str, str] = source_settings.hidden(texts)
    return labels


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
        Setting(
            "name",
            None,
            _optional(_name),
            _NAME_ALLOWED,
            "What people call the run; default: its job, or words and a number.",
        ),
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
            hide=source_settings.hidden,
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
            hide=source_settings.without_secrets,
        ),
        Setting(
            "destinations",
            [],
            _listed(_destination),
            "NAME, NAME:ADDRESS or a server's URL, without a password; a list, or with commas between them",
            "Where else the run is delivered to; docs/guides/destinations.md.",
            hide=source_settings.without_secrets,
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
        shown = (f"{name}={SETTINGS[name].shown(value)!r}" for name, value in self.given.items())
        return f"Settings({', '.join(shown)})"


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
    users, projects = user_file(environ), project_file(cwd)
    if users is not None:
        values.update(_of_user(users))
    if projects is not None:
        values.update(_of_project(projects, environ))
    for setting in SETTINGS.values():
        text = environ.get(setting.variable)
        if text:
            place = f"environment variable {setting.variable}"
            values[setting.name] = (setting.parse(text, place), place)
    values.update({name: (value, "argument") for name, value in given.items()})
    if projects is not None:
        _bind_headers(values, projects, environ)
    return values


def _bind_headers(values: dict[str, tuple[Any, str]], project: str, environ: Mapping[str, str]) -> None:
    """Headers are for the exporters that were named with them, or by the user: not for those of a project
    file that has none of its own, trusted or not.
    """
    headers, place = values["openmetrics_headers"]
    named = [name for name in ("openmetrics_endpoints", "dcgm_exporter") if values[name][1] == project]
    if headers and place != project and named:
        values["openmetrics_headers"] = ({}, "default")
        if _speaks(environ):
            trust.say_once(
                f"{project} names {' and '.join(named)}: openmetrics_headers ({place}) are not sent there; "
                "name both in one place"
            )


def wanting_trust(table: Mapping[str, Any]) -> list[str]:
    """The settings of a project file that count only if the user trusts it."""
    return [
        name for name, value in table.items() if name in SETTINGS and not SETTINGS[name].is_harmless(value)
    ]


def _of_user(path: str) -> dict[str, tuple[Any, str]]:
    return _parsed(path, _table(path)[0])


def _of_project(path: str, environ: Mapping[str, str]) -> dict[str, tuple[Any, str]]:
    table, content = _table(path)
    names = wanting_trust(table)
    why = trust.objection(path, content, environ) if names else ""
    if why and _speaks(environ):
        trust.say_ignored(path, names, why, environ)
    return _parsed(path, table, names if why else ())


def _parsed(path: str, table: Mapping[str, Any], without: Collection[str] = ()) -> dict[str, tuple[Any, str]]:
    settings = {name: find(name, path) for name in table}
    return {
        name: (settings[name].parse(value, path), path)
        for name, value in table.items()
        if name not in without
    }


def _table(path: str) -> tuple[dict[str, Any], bytes]:
    try:
        content = read(path)
        return parsed(path, content), content
    except ValueError as error:
        raise SettingError(str(error)) from None


def _speaks(environ: Mapping[str, str]) -> bool:
    """Of a job's processes one is enough to say something."""
    job = launcher.identity(environ)
    return job is None or not job.rank
