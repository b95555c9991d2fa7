"""Settings from W&B's environment variables, where nothing sets ours. Loaded only if there are any.

Where the script imports W&B's own package, the variables are for that, and nothing is read here.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from runvitals.monitoring.settings.messages import notify
from runvitals.monitoring.settings.settings import SETTINGS
from runvitals.monitoring.settings.wandb_arguments import CONSOLES, MODES, RESUMES

VARIABLES = {
    "WANDB_PROJECT": "project",
    "WANDB_NAME": "name",
    "WANDB_RUN_ID": "run_id",
    "WANDB_RESUME": "resume",
    "WANDB_RUN_GROUP": "group",
    "WANDB_JOB_TYPE": "job_type",
    "WANDB_TAGS": "tags",
    "WANDB_NOTES": "notes",
    "WANDB_MODE": "mode",
    "WANDB_DIR": "dir",
    "WANDB_SILENT": "quiet",
    "WANDB_BASE_URL": "server",
    "WANDB_CONSOLE": "console",
}
"""W&B's variable → our setting. `WANDB_ENTITY` belongs to the setting `entity` itself, and `WANDB_API_KEY`
is the key for the server in `WANDB_BASE_URL`."""
_SERVICE = "wandb.ai"
_TRUE = ("true", "1", "yes", "on")
_read: list[tuple[str, ...]] = []


def read(traced: Mapping[str, tuple[Any, str]], environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings that W&B's variables set and nothing else does; prints once which these are.

    Args:
        traced: name of a setting → (value, origin), as from `settings.trace`.
        environ: the environment.

    Raises:
        SettingError: an invalid value; it names the variable.
    """
    if "wandb" in sys.modules:
        return {}
    texts = {name: environ[name] for name in VARIABLES if environ.get(name)}
    if environ.get("WANDB_DISABLED", "").lower() in _TRUE:
        texts["WANDB_MODE"] = "disabled"
    values: dict[str, Any] = {}
    used = []
    for variable, text in texts.items():
        setting = SETTINGS[VARIABLES[variable]]
        if variable == "WANDB_CONSOLE" and CONSOLES.get(text) is True:
            continue  # our default
        if traced[setting.name][1] != "default" or (variable == "WANDB_BASE_URL" and _is_service(text)):
            continue
        values[setting.name] = setting.parse(_ours(setting.name, text), f"environment variable {variable}")
        used.append(variable)
    if used and not values.get("quiet") and tuple(used) not in _read:
        _read.append(tuple(used))
        notify(f"read from W&B's environment variables, because ours are not set: {', '.join(used)}")
    return values


def _ours(setting: str, text: str) -> str:
    """Return the text of a variable as our setting spells it."""
    if setting == "mode":
        return MODES.get(text, text)
    if setting == "console":
        return "false" if text == "off" else text
    if setting == "resume":
        return "allow" if text.lower() in _TRUE else RESUMES.get(text, text) or "allow"
    return text


def _is_service(url: str) -> bool:
    """Return whether a URL is that of W&B's own service."""
    host = url.partition("://")[2].partition("/")[0].rpartition("@")[2].partition(":")[0].lower()
    return host == _SERVICE or host.endswith(f".{_SERVICE}")
