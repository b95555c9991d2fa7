"""What routes of a shared server take as parameters: the requester, and services."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import Depends
from starlette.exceptions import HTTPException
from starlette.requests import Request

from runvitals.server.access.control import AccessControl
from runvitals.server.access.requester import Requester, requester_of
from runvitals.server.account_services import AccountServices
from runvitals.server.http.immediate import immediate
from runvitals.server.mail.notices import Notices
from runvitals.server.outside_services import OutsideServices
from runvitals.server.services import shared_services_of

if TYPE_CHECKING:
    from runvitals.server.doors.recording import DoorRecorder
    from runvitals.server.files.received_files import ReceivedFiles


TheRequester = Annotated[Requester, Depends(requester_of)]


@immediate
def access_of(request: Request) -> AccessControl:
    """Return what decides who may do what."""
    return shared_services_of(request).access


TheAccess = Annotated[AccessControl, Depends(access_of)]


@immediate
def account_services_of(request: Request) -> AccountServices:
    """Return the passwords, limits and mail of accounts."""
    return shared_services_of(request).account_services


TheServices = Annotated[AccountServices, Depends(account_services_of)]


def notices_of(services: TheServices) -> Notices:
    """Return the mail to users, as of now."""
    return services.notices()


TheNotices = Annotated[Notices, Depends(notices_of)]


@immediate
def outside_services_of(request: Request) -> OutsideServices:
    """Return what reaches other servers."""
    return shared_services_of(request).outside_services


TheOutsideServices = Annotated[OutsideServices, Depends(outside_services_of)]


def door_recorder(request: Request) -> DoorRecorder:
    """Return what stores the envelopes that doors make of requests."""
    return shared_services_of(request).door_recorder


@immediate
def received_files(request: Request) -> ReceivedFiles:
    """Return the files that runs have sent, or raise 404 on a server that keeps none."""
    files = shared_services_of(request).files
    if files is None:
        raise HTTPException(404, "this server keeps no files")
    return files
