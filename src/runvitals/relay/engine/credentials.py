"""Credentials for destinations: HTTP headers from environment variables or from a file.

They are never part of an address, which is written into the run's folder and visible in process lists.

Credentials in the environment are only sent to the server they were set for, not to servers named elsewhere.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from runvitals.monitoring.monitor.relay_connection import destination_variables
from runvitals.monitoring.settings.settings import SETTINGS, SettingError, resolve
from runvitals.relay.engine.destination_spec import DestinationSpec

_USUAL_PORTS = {"http": 80, "https": 443}
# The variables that name the servers which the credentials in the environment belong to.
SERVERS = {
    "mlflow": ("MLFLOW_TRACKING_URI",),
    "otel": ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"),
    "remote_write": ("REMOTE_WRITE_URL",),
}


def credentials_are_for(url: str, kind: str, environ: Mapping[str, str]) -> bool:
    """Return whether the environment's credentials for a kind of destination belong to the server of a URL.

    They belong to the servers named by the variables in `SERVERS`. If there are none, they belong to the only
    server of that kind in `RUNVITALS_DESTINATIONS`; if that lists several, they belong to none of them.

    Args:
        kind: the kind of destination: `remote_write`.

    Example:
        >>> credentials_are_for("https://other", "otel", {"OTEL_EXPORTER_OTLP_ENDPOINT": "https://mine:4318"})
        False
    """
    origins = {_origin(server) for server in _servers(kind, environ)}
    if not origins:
        origins = {_origin(address) for address in _addresses(kind, environ)}
        if len(origins) > 1:
            return False
    return not origins or _origin(url) in origins


def environ_for_undelivered(destination: str, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment for a run whose destination is only known from a file in its folder.

    It includes credentials only if the environment or the user's settings name that destination or its
    server.
    """
    kind = destination.partition(":")[0].replace("-", "_")
    if kind in ("http", "https") or _servers(kind, environ):
        return environ  # `stored_keys.token` decides which server our own tokens are for
    if destination in (spec.text for spec in configured_destinations(environ)):
        return environ
    own = destination_variables([destination], environ)
    return {name: text for name, text in environ.items() if name not in own}


def configured_destinations(environ: Mapping[str, str]) -> list[DestinationSpec]:
    """Return the destinations named by the environment and the user's settings.

    There are none if these are invalid, which is reported when a run starts.
    """
    try:
        return [DestinationSpec(text) for text in resolve({}, environ, os.sep)["destinations"]]
    except SettingError:
        return []


def _servers(kind: str, environ: Mapping[str, str]) -> list[str]:
    variables = [environ.get(name, "") for name in SERVERS.get(kind, ())]
    return " ".join(variables).replace(",", " ").split()


def _addresses(kind: str, environ: Mapping[str, str]) -> list[str]:
    setting = SETTINGS["destinations"]
    try:
        destinations = setting.parse(environ.get(setting.variable, ""), "environment")
    except SettingError:
        return []
    kinds = [text.partition(":") for text in destinations]
    return [address for name, _, address in kinds if name.replace("-", "_") == kind and "://" in address]


def _origin(url: str) -> tuple[str, str, int | None]:
    """Return the scheme, host and port of a URL, which identify a server."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = -1  # invalid; reported when connecting
    return parts.scheme, parts.hostname or "", port or _USUAL_PORTS.get(parts.scheme)


def headers(prefix: str, file: str | None, environ: Mapping[str, str]) -> dict[str, str]:
    """Return headers for requests to one destination.

    Args:
        prefix: of the variables `<prefix>_TOKEN` (a bearer token), `<prefix>_USER` and `<prefix>_PASSWORD`,
            and `<prefix>_HEADERS` (`Name=value,Name=value`, percent-encoded where needed).
        file: path of a file with one header per line, `Name: value`; these override the variables. It is read
            for each request, so it may change.

    Raises:
        OSError: the file could not be read.
        ValueError: invalid header; the text does not repeat it.

    Example:
        >>> headers("REMOTE_WRITE", None, {"REMOTE_WRITE_TOKEN": "secret"})
        {'Authorization': 'Bearer secret'}
    """
    headers: dict[str, str] = {}
    token, user = environ.get(f"{prefix}_TOKEN"), environ.get(f"{prefix}_USER")
    if token:
        headers["Authorization"] = f"Bearer {token}"
    elif user:
        secret = f"{user}:{environ.get(f'{prefix}_PASSWORD', '')}"
        headers["Authorization"] = f"Basic {b64encode(secret.encode()).decode()}"
    headers.update(parse_headers(environ.get(f"{prefix}_HEADERS", ""), f"{prefix}_HEADERS"))
    if file is not None:
        headers.update(_headers_from_file(file))
    return headers


def parse_headers(text: str, where: str) -> dict[str, str]:
    """Parse `Name=value,Name=value`, the format of OpenTelemetry's variables.

    Raises:
        ValueError: invalid list.

    Example:
        >>> parse_headers("X-Scope-OrgID=team%20a,api-key=1", "OTEL_EXPORTER_OTLP_HEADERS")
        {'X-Scope-OrgID': 'team a', 'api-key': '1'}
    """
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    return dict(_check_header(name, equals, unquote(value), where) for name, equals, value in pairs)


def _headers_from_file(path: str) -> dict[str, str]:
    with open(os.path.expanduser(path), encoding="utf-8") as file:
        lines = [line for line in file.read().splitlines() if line.strip() and not line.startswith("#")]
    return dict(_check_header(*line.partition(":"), path) for line in lines)


def _check_header(name: str, separator: str, value: str, where: str) -> tuple[str, str]:
    name, value = name.strip(), value.strip()
    valid_name = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    if not (separator and valid_name and value.isprintable() and value.isascii()):
        raise ValueError(f"{where} contains an invalid header; expected NAME and value on one line")
    return name, value
