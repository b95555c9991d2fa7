"""What a far side wants to see before it takes anything in: headers, from the environment or from a file.

Never from an address, which is written into the run's folder and can be seen in lists of processes.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import unquote


def headers(prefix: str, file: str | None, environ: Mapping[str, str]) -> dict[str, str]:
    """Headers for requests to one destination.

    Args:
        prefix: of the variables `<prefix>_TOKEN` (a bearer token), `<prefix>_USER` and `<prefix>_PASSWORD`,
            and `<prefix>_HEADERS` (`Name=value,Name=value`, percent-encoded where needed).
        file: path of a file with a header a line, `Name: value`; it goes before the variables. It is read
            each time, so that what it holds may change.

    Raises:
        OSError: the file cannot be read.
        ValueError: what is no header; the text does not repeat it.

    Example:
        >>> headers("REMOTE_WRITE", None, {"REMOTE_WRITE_TOKEN": "secret"})
        {'Authorization': 'Bearer secret'}
    """
    found: dict[str, str] = {}
    token, user = environ.get(f"{prefix}_TOKEN"), environ.get(f"{prefix}_USER")
    if token:
        found["Authorization"] = f"Bearer {token}"
    elif user:
        secret = f"{user}:{environ.get(f'{prefix}_PASSWORD', '')}"
        found["Authorization"] = f"Basic {b64encode(secret.encode()).decode()}"
    found.update(listed(environ.get(f"{prefix}_HEADERS", ""), f"{prefix}_HEADERS"))
    if file is not None:
        found.update(_of_file(file))
    return found


def listed(text: str, where: str) -> dict[str, str]:
    """`Name=value,Name=value` as OpenTelemetry's variables have it.

    Raises:
        ValueError: what is no such list.

    Example:
        >>> listed("X-Scope-OrgID=team%20a,api-key=1", "OTEL_EXPORTER_OTLP_HEADERS")
        {'X-Scope-OrgID': 'team a', 'api-key': '1'}
    """
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    return dict(_checked(name, equals, unquote(value), where) for name, equals, value in pairs)


def _of_file(path: str) -> dict[str, str]:
    with open(os.path.expanduser(path), encoding="utf-8") as file:
        lines = [line for line in file.read().splitlines() if line.strip() and not line.startswith("#")]
    return dict(_checked(*line.partition(":"), path) for line in lines)


def _checked(name: str, between: str, value: str, where: str) -> tuple[str, str]:
    name, value = name.strip(), value.strip()
    right = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    if not (between and right and value.isprintable() and value.isascii()):
        raise ValueError(f"{where} holds what is no header: NAME and a value of one line are wanted")
    return name, value
