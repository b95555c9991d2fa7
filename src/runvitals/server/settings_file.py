"""The file of `runvitals server --settings`: settings of the organisation and providers, as TOML.

[settings]
name = "The lab"
signup = "domain"

[[providers]]
id = "lab"
...
"""

from __future__ import annotations

import sys
from typing import Any, Final

from runvitals.server.alerts.slack_app import ID_SETTING, SECRET_SETTING, sealed_slack_secret
from runvitals.server.database.secret_box import SecretBox
from runvitals.server.mail.settings import sealed_smtp_url, server_url
from runvitals.server.organisation.settings import checked_settings
from runvitals.server.sign_on.providers import stored_providers

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_MAX_BYTES: Final = 1 << 20
_TABLES: Final = ("settings", "providers")


def read_settings_file(path: str, box: SecretBox) -> dict[str, Any]:
    """Return the settings of a file as they are stored, with encrypted secrets.

    Raises:
        ValueError: the file is not valid; the text says where.
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise ValueError(f"{path}: the file is larger than {_MAX_BYTES} bytes")
    try:
        tables = tomllib.loads(content.decode())
        return _settings(tables, box)
    except ValueError as error:  # also TOMLDecodeError and UnicodeDecodeError
        raise ValueError(f"{path}: {error}") from None


def _settings(tables: dict[str, Any], box: SecretBox) -> dict[str, Any]:
    unknown = sorted(tables.keys() - set(_TABLES))
    if unknown:
        raise ValueError(f"unknown table {unknown[0]!r}; expected [settings] and [[providers]]")
    table = tables.get("settings", {})
    if not isinstance(table, dict):
        raise ValueError("expected settings as a table: [settings]")
    plain = {
        name: value for name, value in table.items() if name not in ("smtp_url", ID_SETTING, SECRET_SETTING)
    }
    settings = checked_settings(plain)
    if settings.get("url"):
        settings["url"] = server_url(settings["url"])
    if "smtp_url" in table:
        settings["smtp_url"] = sealed_smtp_url(str(table["smtp_url"]), box)
    if ID_SETTING in table:
        settings[ID_SETTING] = str(table[ID_SETTING])
    if SECRET_SETTING in table:
        settings[SECRET_SETTING] = sealed_slack_secret(str(table[SECRET_SETTING]), box)
    providers = tables.get("providers")
    if providers is not None:
        if not isinstance(providers, list) or not all(isinstance(entry, dict) for entry in providers):
            raise ValueError("expected providers as an array of tables: [[providers]]")
        settings["providers"] = stored_providers(providers, (), box)
    return settings
