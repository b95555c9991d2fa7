"""Checks of forms for new users, before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from runvitals.model.account_names import address_key, display_name, entity_name
from runvitals.server.account_services import AccountServices
from runvitals.server.http.errors import InvalidFields


def check_new_user(
    services: AccountServices, name: str, email: str, password: str, shown_name: str, **other_names: str
) -> None:
    """Check what a form for a new user holds.

    Args:
        shown_name: the display name; may be empty.
        other_names: further names of users or teams, by field.

    Raises:
        InvalidFields: what is wrong with each field.
    """
    checks: dict[str, Callable[[], object]] = {
        "name": lambda: entity_name(name),
        "email": lambda: address_key(email),
        "display_name": lambda: display_name(shown_name or "-"),  # without one, the name is shown
        **{field: partial(entity_name, text) for field, text in other_names.items()},
    }
    problems = {field: problem for field, check in checks.items() if (problem := _problem(check))}
    weak = services.password_problem(password, name, (email,))
    if weak is not None:
        problems["password"] = weak
    if problems:
        raise InvalidFields(problems)


def check_new_password(services: AccountServices, user_id: int, name: str, password: str, field: str) -> None:
    """Check a user's new password, or raise InvalidFields for its field of the request."""
    addresses = tuple(email.address for email in services.accounts.emails.of_user(user_id))
    weak = services.password_problem(password, name, addresses)
    if weak is not None:
        raise InvalidFields({field: weak})


def _problem(check: Callable[[], object]) -> str | None:
    try:
        check()
    except ValueError as error:
        return str(error)
    return None
