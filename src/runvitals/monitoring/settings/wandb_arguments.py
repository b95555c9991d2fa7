"""Arguments of W&B's functions and settings under W&B's names. Loaded only by scripts that use them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from runvitals.errors import UnsupportedArgument
from runvitals.monitoring.settings.messages import notify
from runvitals.monitoring.settings.setting_definition import SettingError

_NO_EFFECT = frozenset(
    ("allow_val_change", "anonymous", "force", "magic", "monitor_gym", "save_code", "tensorboard")
)
_INSTEAD_OF = {"monitor_gym": "log(Video)", "save_code": "save()"}
_ABSENT_OF_INIT = {
    "fork_from": "start a run with init(), and log the rows from which it continues",
    "resume_from": "resume continues a run at its end; start a run with init() to go back",
}
RESUMES: dict[Any, str | None] = {True: "allow", False: None, "auto": "allow"}
"""Our values of `resume` for W&B's, without those that are the same."""
CONSOLES = {"auto": True, "redirect": True, "wrap": True, "wrap_raw": True, "wrap_emu": True, "off": False}
"""Whether W&B's ways to record the console record it."""
MODES = {"shared": "online", "dryrun": "offline", "run": "online"}
"""Our modes for W&B's. Processes with one run id share a run in every mode."""
_REINIT = {
    None: "return", "default": "return", False: "return", "return_previous": "return",
    True: "finish", "finish_previous": "finish", "create_new": "beside",
}  # fmt: skip

_SETTINGS = {
    "x_stats_sampling_interval": "sampling_interval",
    "_stats_sample_rate_seconds": "sampling_interval",
    "_stats_sampling_interval": "sampling_interval",
    "x_stats_disk_paths": "disk_paths",
    "_stats_disk_paths": "disk_paths",
    "x_stats_gpu_device_ids": "gpu_ids",
    "x_stats_track_process_tree": "process_tree",
    "x_stats_open_metrics_endpoints": "openmetrics_endpoints",
    "_stats_open_metrics_endpoints": "openmetrics_endpoints",
    "x_stats_open_metrics_filters": "openmetrics_filters",
    "_stats_open_metrics_filters": "openmetrics_filters",
    "x_stats_open_metrics_http_headers": "openmetrics_headers",
    "x_stats_dcgm_exporter": "dcgm_exporter",
    "x_stats_neuron_monitor_config_path": "neuron_monitor_config",
    "silent": "quiet",
    "run_group": "group",
    "run_job_type": "job_type",
    "run_name": "name",
    "run_notes": "notes",
    "run_tags": "tags",
    "base_url": "server",
    "wandb_dir": "dir",
    "root_dir": "dir",
}
"""W&B's name of a setting → ours."""
_SETTINGS_WITHOUT_EFFECT = (
    "start_method", "init_timeout", "login_timeout", "show_", "disable_", "code_dir", "save_code", "program",
    "allow_", "anonymous", "capture_", "console_", "ignore_globs", "heartbeat", "relogin", "summary_",
    "symlink", "sync_", "table_raise", "git_", "host", "http", "https", "max_", "notebook_name", "email",
    "username", "reinit", "finish_timeout_raises", "organization", "strict", "x_", "_",
)  # fmt: skip
"""The beginnings of W&B's settings that change nothing here."""


def of_init(others: Mapping[str, Any]) -> None:
    """Check the arguments of `wandb.init` that `init` does not have itself.

    Raises:
        TypeError: an unknown argument, or one that is not supported.
    """
    for name, value in others.items():
        if name in _ABSENT_OF_INIT:
            if value is not None:
                raise UnsupportedArgument(
                    f"init(): {name} is not supported; instead: {_ABSENT_OF_INIT[name]}"
                )
        elif name not in _NO_EFFECT:
            raise TypeError(f"init() got an unexpected keyword argument {name!r}")
    for name, instead in _INSTEAD_OF.items():
        if others.get(name):
            notify(f"{name} of wandb.init() has no effect here; use {instead}")


def reinit(value: object) -> bool:
    """Return whether `init` finishes the open run instead of returning it.

    Raises:
        ValueError: an unknown value.
    """
    policy = _REINIT.get(value) if isinstance(value, (str, bool, type(None))) else None
    if policy is None:
        raise ValueError(
            f"init(): reinit is {value!r}; expected True, False, return_previous, finish_previous "
            "or create_new"
        )
    return policy == "finish"


def select_entries(
    config: Mapping[str, Any], without: Collection[str] | None, only: Collection[str] | None
) -> Any:
    """Return the entries of a configuration that `config_exclude_keys` and `config_include_keys` leave."""
    return {
        name: value
        for name, value in config.items()
        if (only is None or name in only) and (without is None or name not in without)
    }


def step_metric(x: str | None, others: Mapping[str, Any]) -> str | None:
    """Return the x-axis that `define_metric` was given, under our name or W&B's.

    Raises:
        TypeError: an unknown argument.
    """
    for name in others:
        if name not in ("step_metric", "step_sync", "overwrite"):
            raise TypeError(f"define_metric() got an unexpected keyword argument {name!r}")
    metric = others.get("step_metric")
    return x if metric is None else metric


def own_settings(values: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Settings with W&B's names replaced by ours. Those that change nothing here are left out, and listed.

    Args:
        values: as given.
        names: the names of our settings.

    Raises:
        SettingError: a setting that names a credential.

    Example:
        >>> own_settings({"x_stats_sampling_interval": 5.0, "start_method": "thread"}, ())
        {'sampling_interval': 5.0}
    """
    settings: dict[str, Any] = {}
    ignored = []
    for name, value in values.items():
        if name in ("api_key", "identity_token_file"):
            raise SettingError(f"{name} (argument) is not a setting; use login() or `runvitals login`")
        if name == "console" and value in CONSOLES:
            if not CONSOLES[value]:
                settings[name] = False
        elif name in _SETTINGS or name in names:
            settings[_SETTINGS.get(name, name)] = value
        elif name in ("x_disable_stats", "_disable_stats"):
            if value:
                settings["collectors"] = ["cpu", "-cpu"]  # only one source, and not that one
        elif name == "x_label":
            settings["labels"] = {"label": str(value)}
        elif name.startswith(_SETTINGS_WITHOUT_EFFECT):
            ignored.append(name)
        else:
            settings[name] = value  # unknown: reported with the closest name
    if "mode" in settings:
        settings["mode"] = MODES.get(settings["mode"], settings["mode"])
    if "resume" in settings:
        settings["resume"] = RESUMES.get(settings["resume"], settings["resume"])
    if ignored:
        notify(f"these settings of W&B have no effect here: {', '.join(sorted(ignored))}")
    return settings


_MEDIA_WITHOUT_EFFECT = frozenset((
    "mode", "file_type", "normalize", "grouping", "format", "inject", "data_is_not_path", "dtype", "optional",
    "allow_mixed_types",
))  # fmt: skip
_DATA = "data_or_path"
"""W&B's name for the data of media."""
_ABSENT_OF_MEDIA = {
    "log_mode": "log a Table once, when it is complete",
    "rows": "data",
}


def data_of(kind: str, data: Any, others: Mapping[str, Any]) -> Any:
    """Return the data of media, under our name or W&B's, and check the other arguments; see `of_media`."""
    of_media(kind, {name: value for name, value in others.items() if name != _DATA})
    if data is ... and _DATA not in others:
        raise TypeError(f"{kind}(): expected data: an array, a path or bytes")
    return others[_DATA] if data is ... else data


def of_media(kind: str, others: Mapping[str, Any]) -> None:
    """Check the arguments of W&B's media that ours do not have.

    Raises:
        TypeError: an unknown argument, or one that is not supported.
    """
    for name, value in others.items():
        if name in _ABSENT_OF_MEDIA:
            if value is not None and value != "IMMUTABLE":
                raise UnsupportedArgument(
                    f"{kind}(): {name} is not supported; instead: {_ABSENT_OF_MEDIA[name]}"
                )
        elif name not in _MEDIA_WITHOUT_EFFECT:
            raise TypeError(f"{kind}() got an unexpected keyword argument {name!r}")
