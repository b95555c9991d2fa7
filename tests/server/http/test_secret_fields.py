"""No error repeats a secret that a request held: every field of every request is judged by its name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runvitals.monitoring.environment import redaction
from runvitals.server.account_routes import ACCOUNT_ROUTERS
from runvitals.server.app import application
from runvitals.server.http.secret_fields import SECRET_FIELDS, is_secret_field
from runvitals.server.local_app import local_services
from runvitals.server.organisation.settings import SETTINGS
from tests.server.accounts.routes.people import Browser, serving_people

WORDS = frozenset(
    (
        "code",
        "credential",
        "invitation",
        "key",
        "new",
        "old",
        "passkey",
        "password",
        "secret",
        "smtp",
        "token",
    )
)
"""Words in the names of fields that may be secret."""
PUBLIC = frozenset(("code_saving", "errors_pass", "kms_key", "refuse_new_runs"))
"""Fields with such a word that hold no secret: switches."""


def test_every_field_of_a_request_whose_name_sounds_secret_is_secret() -> None:
    api = application(local_services(Any), routers=ACCOUNT_ROUTERS).openapi()  # type: ignore[arg-type]  # it is not asked
    names = {name for operation in _operations(api) for name in _fields(api, operation)}
    assert {"password", "device_code", "display_name", "secret"} <= names
    sounding = {name for name in names if _sounds_secret(name)}
    assert sounding - PUBLIC <= SECRET_FIELDS
    assert not SETTINGS.keys() & SECRET_FIELDS  # the secret ones of the organisation are apart: `smtp_url`


def _sounds_secret(name: str) -> bool:
    return redaction.is_secret(name, "Secret123") or bool(WORDS & set(name.split("_")))


def _operations(api: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path in api["paths"].values():
        yield from (operation for operation in path.values() if "requestBody" in operation)


def _fields(api: dict[str, Any], part: Any, seen: frozenset[str] = frozenset()) -> Iterator[str]:
    """The names of all fields of a request, those within others too."""
    if isinstance(part, dict) and "requestBody" in part:
        part = part["requestBody"]
    if isinstance(part, list):
        for entry in part:
            yield from _fields(api, entry, seen)
    elif isinstance(part, dict):
        reference = part.get("$ref")
        if reference is not None and reference not in seen:
            schema = api["components"]["schemas"][reference.rpartition("/")[2]]
            yield from _fields(api, schema, seen | {reference})
        for name, entry in part.get("properties", {}).items():
            yield name
            yield from _fields(api, entry, seen)
        for name, entry in part.items():
            if name != "properties":
                yield from _fields(api, entry, seen)


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("password", True),
        ("providers[0].client_secret", True),
        ("passkey.response.signature", True),
        ("links[2].url", False),
        ("display_name", False),
    ],
)
def test_parts_of_secrets_are_secret(name: str, secret: bool) -> None:
    assert is_secret_field(name) is secret


def test_errors_about_providers_and_misnamed_fields_name_no_secret(tmp_path: Path) -> None:
    with serving_people(tmp_path) as people:
        rita = people.browser("rita")
        _refused_providers(rita)
        response = rita.put("/account/password", json={"passwort": "hunter2-hunter2"})
        assert "passwort" in response.json()["error"]
        assert "hunter2" not in response.text


def _refused_providers(rita: Browser) -> None:
    provider = {"id": "lab", "client_secret": "hunter2-hunter2"}
    for wrong in ([provider] * 30, provider, [[provider]], "https://me:hunter2-hunter2@lab.example"):
        response = rita.put("/organisation/providers", json={"providers": wrong})
        assert response.status_code == 422
        assert "providers" in response.json()["error"]
        assert "hunter2" not in response.text
