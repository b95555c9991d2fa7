"""Messages about accounts and teams: their subject, their text and where their link leads.

Those about joining teams, their end and their projects are in `team_messages`.

Secrets of links are in the fragment of the URL, which browsers send to no server: neither logs nor proxies
see them. What users wrote (names, texts of invitations) is shown on one line, without control characters.
"""

from __future__ import annotations

from collections.abc import Sequence

from runvitals.model.durations import DAY_MS, HOUR_MS
from runvitals.server.mail.message import Link, Message, join_names, one_line, paragraphs_of, time_text

_IGNORE = "If this was not you, no action is needed: nothing happens unless the link is opened."
_NOT_YOU = (
    "If this was not you, change your password now, end all sessions and revoke the keys you do not know."
)


def confirm_address(name: str, address: str, token: str) -> Message:
    """To a new address of a user: its owner must confirm it."""
    return Message(
        "confirm_address",
        "Confirm your e-mail address",
        (f"The user {one_line(name)} gave {one_line(address)} as an e-mail address. Is it yours?", _IGNORE),
        Link("Confirm the address (within 48 hours)", f"/-/verify#{token}"),
        security=True,
        life_ms=2 * DAY_MS,
    )


def already_registered(name: str) -> Message:
    """To the owner of an address with which someone tried to sign up."""
    return Message(
        "already_registered",
        "You already have an account",
        (
            "Someone tried to sign up with this e-mail address. "
            f"It belongs to your account {one_line(name)}.",
            "If this was you, sign in with it, or reset your password on the sign-in page.",
        ),
        Link("Sign in", "/-/login"),
        security=True,
    )


def address_already_used(name: str) -> Message:
    """To the owner of an address that another user tried to add."""
    return Message(
        "address_already_used",
        "Someone tried to add your e-mail address",
        (
            "Another user tried to add this e-mail address to their account. "
            f"It stays with your account {one_line(name)}; nothing was changed.",
        ),
        security=True,
    )


def reset_password(name: str, token: str) -> Message:
    """To someone who forgot the password."""
    return Message(
        "reset_password",
        "Reset your password",
        (f"Someone asked to reset the password of your account {one_line(name)}.", _IGNORE),
        Link("Choose a new password (within 60 minutes)", f"/-/reset#{token}"),
        security=True,
        life_ms=HOUR_MS,
    )


def reset_by_provider(name: str, providers: Sequence[str]) -> Message:
    """To someone who asked to reset a password but signs in elsewhere."""
    return Message(
        "reset_by_provider",
        "How you sign in",
        (
            f"Someone asked to reset the password of your account {one_line(name)}, which has none: "
            f"you sign in with {join_names(providers)}.",
        ),
        Link("Sign in", "/-/login"),
        security=True,
        life_ms=HOUR_MS,
    )


def password_changed(name: str) -> Message:
    """To a user whose password is another one now."""
    return _account_changed(
        "password_changed",
        "Your password was changed",
        f"The password of your account {one_line(name)} was changed. All other sessions have ended.",
    )


def primary_address_changed(name: str, old: str, new: str) -> Message:
    """To the old and the new primary address."""
    return _account_changed(
        "primary_address_changed",
        "Your primary e-mail address was changed",
        f"The primary address of your account {one_line(name)} is now {one_line(new)}; "
        f"it was {one_line(old)}.",
    )


def address_deleted(name: str, address: str) -> Message:
    """To the primary address, when another one was deleted."""
    return _account_changed(
        "address_deleted",
        "An e-mail address was removed from your account",
        f"The address {one_line(address)} was removed from your account {one_line(name)}.",
    )


def new_browser(name: str, ip: str, agent: str, time_ms: int) -> Message:
    """To a user who signed in with a browser that was not used before."""
    return _account_changed(
        "new_browser",
        "New sign-in to your account",
        f"A new browser signed in to your account {one_line(name)} on {time_text(time_ms)}, "
        f"from {one_line(ip)}: {one_line(agent) or 'unknown browser'}.",
    )


def second_factor_added(name: str) -> Message:
    """To a user who signs in with a second factor from now on."""
    return _account_changed(
        "second_factor_added",
        "A second factor was added",
        f"Your account {one_line(name)} now needs a code of an authenticator app to sign in.",
    )


def second_factor_removed(name: str) -> Message:
    """To a user without a second factor from now on."""
    return _account_changed(
        "second_factor_removed",
        "Your second factor was removed",
        f"Your account {one_line(name)} now needs only the password to sign in: the second factor was "
        "removed. You can set up another one.",
    )


def login_linked(name: str, provider: str) -> Message:
    """To a user who can now sign in with a provider."""
    return _account_changed(
        "login_linked",
        f"You can now sign in with {one_line(provider)}",
        f"{one_line(provider)} was added to the ways to sign in to your account {one_line(name)}.",
    )


def login_unlinked(name: str, provider: str) -> Message:
    """To a user who can no longer sign in with a provider."""
    return _account_changed(
        "login_unlinked",
        f"You can no longer sign in with {one_line(provider)}",
        f"{one_line(provider)} was removed from the ways to sign in to your account {one_line(name)}.",
    )


def key_created(name: str, key_name: str, public_id: str) -> Message:
    """To the owner of a new API key."""
    return _account_changed(
        "key_created",
        "A new API key was created",
        f"The API key {one_line(key_name)} ({one_line(public_id)}…) was created for {one_line(name)}.",
        "/-/settings/keys",
    )


def key_revoked(name: str, key_name: str, public_id: str) -> Message:
    """To the owner of an API key that no longer works."""
    return _account_changed(
        "key_revoked",
        "An API key was revoked",
        f"The API key {one_line(key_name)} ({one_line(public_id)}…) of {one_line(name)} was revoked.",
        "/-/settings/keys",
    )


def key_ends_soon(
    name: str, key_name: str, public_id: str, expires_ms: int, path: str = "/-/settings/keys"
) -> Message:
    """To the owner of an API key in use, or the administrators of its team. `path`: the page of keys."""
    return Message(
        "key_ends_soon",
        f"The API key {one_line(key_name)} expires soon",
        (
            f"The API key {one_line(key_name)} ({one_line(public_id)}…) of {one_line(name)} stops working on "
            f"{time_text(expires_ms)}.",
            "Rotate it to get a new one; both work for a while.",
        ),
        Link("Keys", path),
        topic="reminders",
    )


def membership_ends_soon(team: str, expires_ms: int) -> Message:
    """To a member of a team whose membership has an end."""
    return Message(
        "membership_ends_soon",
        f"Your membership in the team {one_line(team)} ends soon",
        (
            f"You are in the team {one_line(team)} until {time_text(expires_ms)}. Your runs stay there.",
            "An administrator of the team can extend the membership.",
        ),
        Link("The team", f"/{team}"),
        topic="reminders",
    )


def guest_link_ends_soon(what: str, expires_ms: int, path: str) -> Message:
    """To the user who made a guest link. `what`: such as "the run otter-1"; `path`: its page."""
    return Message(
        "guest_link_ends_soon",
        f"A guest link to {one_line(what)} expires soon",
        (
            f"The guest link to {one_line(what)} that you made stops working on {time_text(expires_ms)}.",
            "Guests who still need access need a new link.",
        ),
        Link("Show", path),
        topic="reminders",
    )


def deletion_requested(name: str, delete_after_ms: int) -> Message:
    """To a user whose account was asked to be deleted after a waiting period."""
    return _deletion_waits("deletion_requested", "Your account will be deleted", name, delete_after_ms)


def deletion_soon(name: str, delete_after_ms: int) -> Message:
    """To a user whose account will be deleted within days."""
    return _deletion_waits("deletion_soon", "Your account will be deleted soon", name, delete_after_ms)


def invitation(organisation_or_team: str, inviter: str, role: str, token: str, text: str = "") -> Message:
    """To an address that is invited. `text`: what the inviter wrote."""
    name = one_line(organisation_or_team)
    return Message(
        "invitation",
        f"{one_line(inviter)} invited you to {name}",
        (
            f"{one_line(inviter)} invited you to {name} as {one_line(role)}.",
            *paragraphs_of(inviter, text),
            "The link is for you only.",
        ),
        Link("Accept or decline", f"/-/invitation#{token}"),
    )


def invitation_of_user(team: str, inviter: str, role: str, text: str = "") -> Message:
    """To a user who is invited by name; needs no secret, because they sign in."""
    return Message(
        "invitation",
        f"{one_line(inviter)} invited you to {one_line(team)}",
        (
            f"{one_line(inviter)} invited you to {one_line(team)} as {one_line(role)}.",
            *paragraphs_of(inviter, text),
        ),
        Link("Accept or decline", "/-/settings/teams"),
    )


def added_to_team(team: str, role: str, by: str) -> Message:
    """To a new member of a team."""
    return Message(
        "added_to_team",
        f"You are now in the team {one_line(team)}",
        (f"{one_line(by)} added you to the team {one_line(team)} as {one_line(role)}.",),
        Link("The team", f"/{team}"),
        topic="teams",
    )


def administrator_joined(team: str, name: str) -> Message:
    """To the administrators of a team that an administrator of the organisation joined."""
    return Message(
        "administrator_joined",
        f"{one_line(name)} joined the team {one_line(team)}",
        (f"{one_line(name)}, an administrator of the organisation, joined the team as its administrator.",),
        Link("The team", f"/{team}"),
        security=True,
    )


def removed_from_team(team: str, by: str) -> Message:
    """To a former member of a team."""
    return Message(
        "removed_from_team",
        f"You are no longer in the team {one_line(team)}",
        (f"{one_line(by)} removed you from the team {one_line(team)}. Your runs stay with the team.",),
        topic="teams",
    )


def team_role_changed(team: str, role: str, by: str) -> Message:
    """To a member with another role."""
    return Message(
        "team_role_changed",
        f"Your role in the team {one_line(team)} was changed",
        (f"{one_line(by)} changed your role in the team {one_line(team)} to {one_line(role)}.",),
        Link("The team", f"/{team}"),
        topic="teams",
    )


def organisation_role_changed(name: str, role: str, by: str) -> Message:
    """To the user, and to all administrators. `role`: such as "administrator" or "billing administrator"."""
    return Message(
        "organisation_role_changed",
        f"The role of {one_line(name)} was changed",
        (f"{one_line(by)} changed the role of {one_line(name)} in the organisation to {one_line(role)}.",),
        security=True,
    )


def account_suspended(name: str) -> Message:
    """To a suspended user."""
    return Message(
        "account_suspended",
        "Your account was suspended",
        (f"An administrator suspended your account {one_line(name)}. Its sessions and keys stop working.",),
        security=True,
    )


def account_reactivated(name: str) -> Message:
    """To a user who is no longer suspended."""
    return Message(
        "account_reactivated",
        "Your account was reactivated",
        (f"An administrator reactivated your account {one_line(name)}.",),
        Link("Sign in", "/-/login"),
        security=True,
    )


def account_deleted(name: str) -> Message:
    """To a user who is deleted. Send it before the addresses are removed."""
    return Message(
        "account_deleted",
        "Your account was deleted",
        (f"The account {one_line(name)} was deleted, with its keys, sessions and personal projects.",),
        security=True,
    )


def settings_changed(by: str, names: Sequence[str]) -> Message:
    """To all administrators, when a setting that matters to security was changed."""
    return Message(
        "settings_changed",
        "Settings of the organisation were changed",
        (f"{one_line(by)} changed these settings of the organisation: {join_names(names)}.",),
        Link("Settings", "/-/organisation/settings"),
        security=True,
    )


def trial() -> Message:
    """To an administrator who checks whether mail arrives."""
    return Message(
        "trial", "Mail works", ("This message shows that the server can send mail.",), security=True
    )


def _account_changed(kind: str, subject: str, what: str, path: str = "/-/settings/security") -> Message:
    return Message(kind, subject, (what, _NOT_YOU), Link("Settings", path), security=True)


def _deletion_waits(kind: str, subject: str, name: str, delete_after_ms: int) -> Message:
    return Message(
        kind,
        subject,
        (
            f"The account {one_line(name)} will be deleted on {time_text(delete_after_ms)}, with its keys, "
            "sessions and personal projects. Runs in teams stay.",
            "Until then you can keep it, and download a copy of your data.",
        ),
        Link("Keep the account", "/-/settings/account"),
        security=True,
    )
