"""Mails with a link that confirms an e-mail address."""

from __future__ import annotations

from runvitals.server.account_services import AccountServices
from runvitals.server.accounts.storage.emails import EmailRow
from runvitals.server.mail import messages


def send_verification(services: AccountServices, user_name: str, email: EmailRow, now_ms: int) -> float:
    """Send the mail; if another user has confirmed the address, send them a mail that says so.

    Returns how long to wait if too many were sent to this address, else 0.
    """
    wait_s = services.take("verification", email.address_key)
    if wait_s > 0:
        return wait_s
    owner = services.accounts.users.by_address(email.address_key)
    if owner is None or owner.id == email.user_id:
        token = services.accounts.one_time_tokens.create(
            "verify_email", now_ms, user_id=email.user_id, email_id=email.id
        )
        message = messages.confirm_address(user_name, email.address, token)
    else:
        message = messages.address_already_used(owner.name)
    services.mailer.send(message, email.address, now_ms)
    return 0.0
