"""`/organisation/mail`: whether mail arrives."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, HTTPException
from pydantic import BaseModel, ConfigDict, Field

from runvitals.accounts.secret_box import SecretUnreadable
from runvitals.mail.smtp import MailRefused, MailServerUnavailable
from runvitals.server.access.permission import needs
from runvitals.server.api.accounts.services import TheServices
from runvitals.server.errors import InvalidFields

router = APIRouter()


class MailTest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    address: str = Field(max_length=254)


@router.post("/organisation/mail/test", dependencies=[needs("org:settings")])
def test_mail(body: MailTest, services: TheServices) -> Any:
    """Send a mail now. The answer is the mail server's, so that a wrong setting is found."""
    try:
        services.mailer.send_trial(body.address)
    except (MailServerUnavailable, MailRefused, SecretUnreadable) as error:
        raise HTTPException(502, str(error)) from None
    except ValueError as error:
        raise InvalidFields({"address": str(error)}) from None
    return {"done": "sent"}
