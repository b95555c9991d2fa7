"""The setting `providers`."""

from __future__ import annotations

from typing import Any

import pytest

from runvitals.server.database.secret_box import SecretBox, SecretUnreadable
from runvitals.server.sign_on.providers import (
    client_secret,
    providers_of,
    shown_providers,
    stored_providers,
)

BOX = SecretBox({"k": bytes(32)})
LAB = {"id": "lab", "label": "Lab", "kind": "oidc", "issuer": "https://idp.example", "client_id": "c"}


def secret_of(stored: list[dict[str, Any]], box: SecretBox = BOX) -> str:
    settings = {"providers": stored}
    (provider,) = providers_of(settings).values()
    return client_secret(settings, provider, box)


def test_the_secret_is_stored_encrypted_and_never_shown() -> None:
    stored = stored_providers([LAB | {"client_secret": "hush"}], [], BOX)
    assert "hush" not in repr(stored)
    assert "hush" not in repr(providers_of({"providers": stored}))
    assert secret_of(stored) == "hush"
    assert shown_providers(stored) == [LAB | {"has_secret": True}]
    with pytest.raises(SecretUnreadable):
        secret_of(stored, SecretBox({"other": bytes(32)}))


def test_a_secret_that_is_not_given_again_is_kept() -> None:
    first = stored_providers([LAB | {"client_secret": "hush"}], [], BOX)
    renamed = stored_providers([LAB | {"label": "New"}], first, BOX)
    assert (renamed[0]["label"], secret_of(renamed)) == ("New", "hush")
    moved = [renamed[0] | {"id": "other"}]
    with pytest.raises(SecretUnreadable):
        secret_of(moved)


@pytest.mark.parametrize(
    "change",
    [{"issuer": "https://elsewhere.example"}, {"client_id": "d"}, {"kind": "github"}],
    ids=lambda change: str(next(iter(change))),
)
def test_a_secret_is_sent_to_no_other_issuer(change: dict[str, Any]) -> None:
    """Otherwise whoever may change the settings could have it sent to themselves."""
    first = stored_providers([LAB | {"client_secret": "hush"}], [], BOX)
    with pytest.raises(ValueError, match="enter the client secret again"):
        stored_providers([LAB | change], first, BOX)
    changed = stored_providers([LAB | change | {"client_secret": "new"}], first, BOX)
    assert secret_of(changed) == "new"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"id": "Lab"}, "invalid id"),
        ({"id": "a/b"}, "invalid id"),
        ({"label": ""}, "label"),
        ({"label": "a\nb"}, "label"),
        ({"kind": "saml"}, "kind"),
        ({"issuer": "http://idp.example"}, "issuer"),
        ({"client_id": 7}, "client_id"),
        ({"scopes": ["email"]}, "openid"),
        ({"scopes": "openid"}, "scopes"),
        ({"auto_create": "yes"}, "auto_create"),
        ({"auto_create": ["no domain"]}, "domain"),
        ({"group_map": {"g": "team"}}, "group_map"),
        ({"group_map": {"g": {"team": "a"}}}, "group_map"),
        ({"admin": True}, "unknown field 'admin'"),
    ],
)
def test_invalid_providers(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        stored_providers([LAB | change], [], BOX)


def test_a_switch_is_no_text() -> None:
    for value in ("no", "false", 1, None):
        with pytest.raises(ValueError, match="invalid trust_email; expected true or false"):
            stored_providers([LAB | {"trust_email": value}], [], BOX)


def test_ids_are_unique() -> None:
    with pytest.raises(ValueError, match="same id"):
        stored_providers([LAB, LAB], [], BOX)
    with pytest.raises(ValueError, match="too many"):
        stored_providers([LAB | {"id": f"p{number}"} for number in range(21)], [], BOX)
