"""All settings, their validation, and how they are resolved.

Precedence: arguments > `RUNVITALS_*` environment variables > project file (`runvitals.toml` here or in a
parent folder) > user file (`runvitals/settings.toml` in the user's configuration folder). From a project file
that the user has not trusted only harmless settings apply (see `trust`). All settings:
`docs/reference/settings.md`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from runvitals.base.terminal_text import inert
from runvitals.monitoring.environment import launcher
from runvitals.monitoring.settings import name_settings as names
from runvitals.monitoring.settings import setting_checks as checks
from runvitals.monitoring.settings import source_settings, trust
from runvitals.monitoring.settings.setting_definition import Setting
from runvitals.monitoring.settings.setting_definition import SettingError as SettingError
from runvitals.monitoring.settings.settings_files import parse, project_file, read, user_file

MODES = ("online", "offline", "disabled")
RESUMES = ("allow", "must", "never")


_DISPLAYED = f"any text; of a long one the first {names.DISPLAY_CHARACTERS} characters count"
_NAME_ALLOWED = "1 to 128 characters without / \\ or control characters"
SETTINGS: dict[str, Setting] = {
    setting.name: setting
    for setting in (
        Setting(
            "project",
            "default",
            checks.project,
            f"{_NAME_ALLOWED}, and not ., .. or -",
            "Project the run belongs to.",
            mend=names.project_identifier,
        ),
        Setting(
            "entity",
            None,
            checks.optional(checks.name),
            _NAME_ALLOWED,
            "Team or user that the run belongs to, on a server with accounts; default: `WANDB_ENTITY`, or"
            " what the owner of the key has set.",
            fallback="WANDB_ENTITY",
            mend=names.team_identifier,
        ),
        Setting(
            "name",
            None,
            checks.optional(names.display_name),
            _DISPLAYED,
            "Display name of the run; default: the job's name, or one such as `brave-otter-417`.",
        ),
        Setting(
            "run_id",
            None,
            checks.optional(checks.run_id),
            "1 to 128 of A-Z a-z 0-9 _ . -, not starting with a dot or a dash",
            "Id of the run. Processes with the same id belong to one run, on one host or many.",
            mend=names.run_identifier,
        ),
        Setting(
            "resume",
            "allow",
            checks.one_of(*RESUMES),
            f"one of {', '.join(RESUMES)}",
            "What to do if a run with this id already exists.",
        ),
        Setting(
            "group",
            None,
            checks.optional(names.display_name),
            _DISPLAYED,
            "Groups the runs of one experiment.",
        ),
        Setting(
            "job_type", None, checks.optional(names.display_name), _DISPLAYED, "Kind of run: train, eval …"
        ),
        Setting(
            "tags",
            [],
            lambda value: names.display_names(checks.list_of(lambda tag: tag)(value)),
            "a list of strings, or comma-separated strings",
            "Tags to find the run by.",
        ),
        Setting("notes", None, checks.optional(checks.text), "a string", "A longer description."),
        Setting(
            "dir", None, checks.optional(checks.path), "a path", "Data folder; default: the user's data home."
        ),
        Setting(
            "mode",
            "online",
            checks.one_of(*MODES),
            f"one of {', '.join(MODES)}",
            "`offline` records without delivering; `disabled` does nothing at all.",
        ),
        Setting(
            "sampling_interval",
            1.0,
            checks.number(0.1, 3600.0),
            "a number of seconds from 0.1 to 3600",
            "Seconds between two samples.",
        ),
        Setting(
            "disk_paths",
            ["/"],
            checks.list_of(checks.absolute_path),
            "absolute paths: a list, or comma-separated",
            "File systems whose usage is recorded.",
        ),
        Setting(
            "process_tree",
            True,
            checks.boolean,
            "true or false",
            "Measure all descendants of the process, not just the process itself.",
        ),
        Setting(
            "gpu_ids",
            None,
            checks.optional(checks.list_of(checks.index)),
            "indices from 0: a list, or comma-separated",
            "Record only these GPUs; default: all.",
        ),
        Setting(
            "collectors",
            ["all"],
            checks.list_of(checks.text),
            "names of sources, `all`, or `-name` to exclude one; a list, or comma-separated",
            "Sources to read.",
        ),
        Setting(
            "labels",
            {},
            checks.labels,
            "a table of strings, or comma-separated key=value pairs",
            "Labels of this writer.",
            hide=source_settings.hidden,
        ),
        Setting(
            "host_root",
            "",
            lambda value: value and checks.absolute_path(value),
            "an absolute path",
            "Where the host's /proc, /sys and disks are mounted in a container.",
        ),
        Setting(
            "console",
            None,
            checks.optional(checks.boolean),
            "true or false",
            "Record what the program prints. Default: what costs nothing, which is what Python prints after"
            " `init()`, and all output to a file; true: `runvitals run` records all output of its command.",
        ),
        Setting("quiet", False, checks.boolean, "true or false", "Print only warnings to stderr."),
        Setting(
            "finish_timeout",
            5.0,
            checks.number(0.0, 600.0),
            "a number of seconds from 0 to 600",
            "How long `finish()` may wait for the last sample.",
        ),
        Setting(
            "server",
            None,
            checks.optional(checks.server),
            "http://host[:port] or https://…, without a password",
            "Server to deliver the run to while it is running; `runvitals login` stores the token.",
            hide=source_settings.without_secrets,
        ),
        Setting(
            "destinations",
            [],
            checks.list_of(checks.destination),
            "NAME, NAME:ADDRESS or a server's URL, without a password; a list, or comma-separated",
            "Additional destinations to deliver the run to; see docs/guides/send-to/README.md.",
            hide=source_settings.without_secrets,
        ),
        Setting(
            "delivery_timeout",
            5.0,
            checks.number(0.0, 600.0),
            "a number of seconds from 0 to 600",
            "How long `finish()` may wait for delivery; the relay continues in the background.",
        ),
        Setting(
            "openmetrics_endpoints",
            {},
            source_settings.endpoints,
            "a table of URLs (http, https, http+unix) by names of A-Z a-z 0-9 _ -, or space-separated"
            " name=URL pairs",
            "Prometheus or OpenMetrics exporters to scrape.",
            of_source=True,
            hide=source_settings.without_secrets,
        ),
        Setting(
            "openmetrics_filters",
            [],
            source_settings.filters,
            "a list of regular expressions, or a table that maps them to a table of label expressions",
            "Which scraped metrics to keep: expressions are searched in `endpoint.metric`; all labels must"
            " match.",
            of_source=True,
        ),
        Setting(
            "openmetrics_headers",
            {},
            source_settings.headers,
            "a table of strings, or space-separated Name=value pairs",
            "Headers for requests to exporters; their values are never recorded.",
            of_source=True,
            hide=source_settings.names_only,
        ),
        Setting(
            "dcgm_exporter",
            None,
            checks.optional(source_settings.url),
            "a URL (http, https, http+unix)",
            "DCGM exporter to read (`http://localhost:9400/metrics`), or a Prometheus that reads it"
            " (`http://prometheus:9090/api/v1/query?query=…`).",
            of_source=True,
            hide=source_settings.without_secrets,
        ),
        Setting(
            "neuron_monitor_config",
            None,
            checks.optional(source_settings.file),
            "the absolute path of a readable file",
            "Configuration file for neuron-monitor; default: runvitals' own.",
            of_source=True,
        ),
    )
}


class Settings:
    """Settings given in code. Those not named come from the environment, the settings files, or defaults.

    Example:
        >>> runvitals.init(settings=runvitals.Settings(sampling_interval=0.5, disk_paths=["/", "/data"]))

    W&B's names of settings are accepted too, such as `x_stats_sampling_interval`.

    Raises:
        SettingError: unknown setting, or invalid value.
    """

    def __init__(self, **values: Any) -> None:
        if not values.keys() <= SETTINGS.keys():
            from runvitals.monitoring.settings import wandb_arguments  # few scripts use W&B's names

            values = wandb_arguments.own_settings(values, SETTINGS)
        self.given = {
            name: find(name, "argument").parse(value, "argument")
            for name, value in values.items()
            if value is not None
        }

    def __repr__(self) -> str:
        pairs = (f"{name}={SETTINGS[name].redact(value)!r}" for name, value in self.given.items())
        return f"Settings({', '.join(pairs)})"


def find(name: str, where: str) -> Setting:
    """Return the setting with this name.

    Raises:
        SettingError: unknown setting; the message suggests the closest name.
    """
    setting = SETTINGS.get(name)
    if setting is None:
        import difflib

        close = difflib.get_close_matches(name, SETTINGS, 1)
        hint = f"; did you mean {close[0]}?" if close else f"; expected one of {', '.join(SETTINGS)}"
        raise SettingError(f"unknown setting {name!r:.200} ({inert(where)}){hint}")
    return setting


def resolve(arguments: Mapping[str, Any], environ: Mapping[str, str], cwd: str) -> dict[str, Any]:
    """Return the value of every setting, from the source with the highest precedence that sets it.

    Args:
        arguments: values from code, already validated (`Settings.given`).
        environ: the environment.
        cwd: where the search for a project file starts.

    Raises:
        SettingError: an unknown setting or an invalid value, from any source.
    """
    return {name: value for name, (value, _) in trace(arguments, environ, cwd).items()}


def trace(arguments: Mapping[str, Any], environ: Mapping[str, str], cwd: str) -> dict[str, tuple[Any, str]]:
    """Like `resolve`, with the origin of each value: name → (value, origin)."""
    values = {name: _default(setting, environ) for name, setting in SETTINGS.items()}
    users, projects = user_file(environ), project_file(cwd)
    if users is not None:
        values.update(_of_user(users))
    if projects is not None:
        values.update(_of_project(projects, environ))
    for setting in SETTINGS.values():
        text = environ.get(setting.variable)
        if text:
            origin = f"environment variable {setting.variable}"
            values[setting.name] = (setting.parse(text, origin), origin)
    values.update({name: (value, "argument") for name, value in arguments.items()})
    if projects is not None:
        _bind_headers(values, projects, environ)
    return values


def _default(setting: Setting, environ: Mapping[str, str]) -> tuple[Any, str]:
    text = environ.get(setting.fallback) if setting.fallback else None
    if not text:
        return setting.default, "default"
    origin = f"environment variable {setting.fallback}"
    return setting.parse(text, origin), origin


def _bind_headers(values: dict[str, tuple[Any, str]], project: str, environ: Mapping[str, str]) -> None:
    """Send headers only to exporters that the same source or the user configured.

    Exporters of a project file that sets no headers itself never get any, trusted or not.
    """
    headers, origin = values["openmetrics_headers"]
    names = [name for name in ("openmetrics_endpoints", "dcgm_exporter") if values[name][1] == project]
    if headers and origin != project and names:
        values["openmetrics_headers"] = ({}, "default")
        if _is_reporting_rank(environ):
            trust.warn_once(
                f"{project} sets {' and '.join(names)}, so openmetrics_headers ({origin}) are not sent "
                "there; set both in the same place"
            )


def needing_trust(table: Mapping[str, Any]) -> list[str]:
    """Return the settings of a project file that apply only if the user trusts it."""
    return [
        name for name, value in table.items() if name in SETTINGS and not SETTINGS[name].is_harmless(value)
    ]


def _of_user(path: str) -> dict[str, tuple[Any, str]]:
    return _parse_table(path, _table(path)[0])


def _of_project(path: str, environ: Mapping[str, str]) -> dict[str, tuple[Any, str]]:
    table, content = _table(path)
    names = needing_trust(table)
    why = trust.reason_untrusted(path, content, environ) if names else ""
    if why and _is_reporting_rank(environ):
        trust.warn_ignored(path, names, why, environ)
    return _parse_table(path, table, names if why else ())


def _parse_table(
    path: str, table: Mapping[str, Any], without: Collection[str] = ()
) -> dict[str, tuple[Any, str]]:
    settings = {name: find(name, path) for name in table}
    return {
        name: (settings[name].parse(value, path), path)
        for name, value in table.items()
        if name not in without
    }


def _table(path: str) -> tuple[dict[str, Any], bytes]:
    try:
        content = read(path)
        return parse(path, content), content
    except ValueError as error:
        raise SettingError(str(error)) from None


def _is_reporting_rank(environ: Mapping[str, str]) -> bool:
    """Only rank 0 of a job prints warnings."""
    job = launcher.identity(environ)
    return job is None or not job.rank
