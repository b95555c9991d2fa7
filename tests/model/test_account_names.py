from __future__ import annotations

import pytest

from runvitals.model.account_names import RESERVED_NAMES, address_key, display_name, domain_key, entity_name


@pytest.mark.parametrize("text", ["ada", "Ada", "a", "vision-lab_2", "0x", "a" * 64])
def test_valid_names(text: str) -> None:
    assert entity_name(text) == text.lower()


@pytest.mark.parametrize(
    "text",
    ["", "-ada", "ada-", "a--b", "a_-b", "a b", "adä", "\u0430da", "a/b", "a" * 65, "a\n", "\u212aelvin"],
)
def test_invalid_names(text: str) -> None:
    with pytest.raises(ValueError, match="expected 1 to 64 characters"):
        entity_name(text)


@pytest.mark.parametrize("name", ["admin", "Settings", "api", "runs", "well-known"])
def test_reserved_names(name: str) -> None:
    assert name.lower() in RESERVED_NAMES
    with pytest.raises(ValueError, match="is reserved"):
        entity_name(name)


def test_display_names() -> None:
    assert display_name("  Ada  Lovelace 👩‍💻 ") == "Ada  Lovelace 👩‍💻"
    assert display_name("e\u0301") == "é"
    for text in ("", " ", "x" * 65, "evil\u202etxt", "a\x00b", "a\nb", "\u3164", "ada\u2800"):
        with pytest.raises(ValueError, match="invalid display name"):
            display_name(text)


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("Ada@Example.ORG", "ada@example.org"),
        (" ada.l+x@example.org ", "ada.l+x@example.org"),
        ("ada@bücher.example", "ada@xn--bcher-kva.example"),
        ("e\u0301@example.org", "é@example.org"),
    ],
)
def test_addresses_are_compared_in_one_form(address: str, key: str) -> None:
    assert address_key(address) == key


@pytest.mark.parametrize(
    "address",
    [
        "", "ada", "ada@", "@example.org", "ada@localhost", "a b@example.org", "a@b@example.org",
        "<a>@example.org", "a\r\nBcc: x@example.org", "ada@-example.org", "ada@example..org",
        "ada@192.0.2.1", "x" * 65 + "@example.org", "ada@" + "x" * 250 + ".org",
    ],
)  # fmt: skip
def test_invalid_addresses(address: str) -> None:
    with pytest.raises(ValueError, match=r"invalid (e-mail address|domain)"):
        address_key(address)


def test_domains() -> None:
    assert domain_key("Example.Org") == "example.org"
    for domain in ("", "localhost", "no domain.org", "@example.org"):
        with pytest.raises(ValueError, match="invalid domain"):
            domain_key(domain)
