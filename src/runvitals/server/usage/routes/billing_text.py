"""Texts of the billing pages, which statements and mails repeat."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from runvitals.model.account_names import address_key


def _printable(text: str) -> str:
    if not all(character.isprintable() or character == "\n" for character in text):
        raise ValueError("expected text without control characters")
    return text


def _mail_address(text: str) -> str:
    if text:
        address_key(text)
    return text


PlainText = Annotated[str, StringConstraints(strip_whitespace=True), AfterValidator(_printable)]
MailAddress = Annotated[PlainText, AfterValidator(_mail_address)]
"""An e-mail address, or "" for none."""
