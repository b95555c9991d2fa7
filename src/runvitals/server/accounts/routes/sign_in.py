"""`/auth`: how to sign in, signing in and out."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from fastapi import BackgroundTasks, Request
from fastapi.responses import Response
from pydantic import Field
from starlette.exceptions import HTTPException

from runvitals.server.access.actions import PUBLIC
from runvitals.server.access.control import AccessControl
from runvitals.server.access.identification import login_page
from runvitals.server.access.permission import needs, with_accounts
from runvitals.server.access.requester import Requester
from runvitals.server.account_services import AccountServices
from runvitals.server.accounts import sign_in
from runvitals.server.accounts.passkeys import RelyingParty
from runvitals.server.accounts.routes.account_schema import AccountSchema, SignedInSchema, account_of
from runvitals.server.accounts.routes.session_cookies import (
    browser_of,
    end_session,
    remember_browser,
    report_new_browser,
    start_session,
)
from runvitals.server.accounts.second_factors import PURPOSE, FactorKind, FactorProof
from runvitals.server.accounts.sign_in import Attempt
from runvitals.server.accounts.storage.sessions import BY_PASSWORD
from runvitals.server.accounts.storage.users import UserRow
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.errors import DetailedError, too_many
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess, TheOutsideServices, TheRequester, TheServices

MAX_PASSWORD: Final = 1024
PASSKEY: Final = "The answer of a passkey: `PublicKeyCredential.toJSON()` of the browser."
Password = Annotated[str, Field(min_length=1, max_length=MAX_PASSWORD)]
Code = Annotated[str | None, Field(max_length=64, description="Of the second factor, or a recovery code.")]
Passkey = Annotated[dict[str, Any] | None, Field(description=PASSKEY)]
Next = Annotated[str, Field(max_length=2000, description="Where the page goes then; a path of this server.")]

router = Router()


class Login(RequestBody):
    """A name or an address, and what proves whose it is."""

    name: str | None = Field(None, max_length=254)
    email: str | None = Field(None, max_length=254)
    password: Password
    code: Code = None
    passkey: Passkey = None
    next: Next = "/"


class PasskeyLogin(RequestBody):
    """The response of a passkey, without a name."""

    passkey: dict[str, Any] = Field(description=PASSKEY)
    next: Next = "/"


class NamedProvider(ResponseBody):
    """A provider at which users sign in."""

    id: str
    label: str


class SignInMethods(ResponseBody):
    """How to sign in here."""

    password: bool
    passkey_origin: str | None = Field(description="Where passkeys work; null: nowhere.")
    providers: list[NamedProvider]
    signup: Literal["closed", "invite", "domain", "open"]
    support_contact: str
    mail: bool = Field(description="Whether this server sends mail.")
    setup: bool = Field(description="There is no administrator yet.")
    organisation: str = Field(description="Its name; empty: it has none.")
    picture: str | None = Field(description="The digest of its picture.")


class PasskeyOptions(ResponseBody):
    """Options with which a browser makes or asks for a passkey."""

    options: dict[str, Any]


class FactorsSchema(ResponseBody):
    """The second factors that a user may choose from."""

    code: bool
    passkey: dict[str, Any] | None = Field(description="What a browser needs to ask for one.")


@router.get("/auth/methods", needs(PUBLIC))
def methods(request: Request, services: TheServices, outside: TheOutsideServices) -> SignInMethods:
    """How to sign in here. `passkey_origin`: the origin at which passkeys work, null if there is none."""
    settings, party = services.settings(), services.relying_party(request)
    return SignInMethods(
        password=settings["password_login"],
        passkey_origin=None if party is None else party.origin,
        providers=[NamedProvider.model_validate(provider) for provider in outside.sign_on.providers()],
        signup=settings["signup"],
        support_contact=services.support_contact(),
        mail=services.mailer.configured,
        setup=not services.accounts.users.any_administrator(),
        organisation=settings["name"],
        picture=services.accounts.pictures.of_organisation(),
    )


@router.post("/auth/login", needs(PUBLIC))
async def login(
    body: Login,
    request: Request,
    response: Response,
    tasks: BackgroundTasks,
    requester: TheRequester,
    access: TheAccess,
    services: TheServices,
) -> SignedInSchema:
    """Sign in by name or e-mail address, and by a code or passkey where the account has a second factor."""
    typed = body.email or body.name
    if not typed:
        raise DetailedError(422, "a name or an e-mail address is missing", {"fields": {"name": "missing"}})
    attempt = Attempt(
        typed,
        body.password,
        FactorProof(body.code, body.passkey, services.relying_party(request)),
        requester.ip,
        browser_of(request, services.box),
        requester.actor,
    )

    def check_and_start() -> AccountSchema:
        user = services.sign_in.check(attempt)
        return sign_in_user(request, response, tasks, requester, access, services, user, BY_PASSWORD)

    try:
        account = await services.hashing(check_and_start)
    except sign_in.SignInRefused as error:
        raise refusal(error, request, services) from None
    return SignedInSchema(account=account, next=login_page.redirect_target(body.next))


@router.post("/auth/passkey/options", needs(PUBLIC), with_accounts())
def passkey_options(request: Request, services: TheServices) -> PasskeyOptions:
    """Return the `PublicKeyCredentialRequestOptionsJSON` with which a browser signs in."""
    return PasskeyOptions(options=services.sign_in.passkeys.signing_in(required_party(request, services)))


@router.post("/auth/passkey", needs(PUBLIC), with_accounts())
def passkey_login(
    body: PasskeyLogin,
    request: Request,
    response: Response,
    tasks: BackgroundTasks,
    requester: TheRequester,
    access: TheAccess,
    services: TheServices,
) -> SignedInSchema:
    """Sign in with a passkey. It is two factors in one: the device, and the PIN or finger that unlocks it."""
    party = required_party(request, services)
    try:
        user = services.sign_in.check_passkey(party, body.passkey, requester.actor)
    except sign_in.SignInRefused as error:
        raise refusal(error, request, services) from None
    account = sign_in_user(request, response, tasks, requester, access, services, user, "passkey")
    return SignedInSchema(account=account, next=login_page.redirect_target(body.next))


@router.post("/auth/logout", needs(PUBLIC), with_accounts(), status_code=204)
def logout(request: Request, requester: TheRequester, access: TheAccess) -> Response:
    """End this browser's session."""
    response = Response(status_code=204)
    if requester.session is not None:
        session, now_ms = requester.session, access.clock()
        access.accounts.sessions.end(
            session.user_id, requester.actor, now_ms, only=session.id, action="user.logout"
        )
        access.rights_changed()
    end_session(request, response)
    return response


def sign_in_user(
    request: Request,
    response: Response,
    tasks: BackgroundTasks,
    requester: Requester,
    access: AccessControl,
    services: AccountServices,
    user: UserRow,
    method: str,
) -> AccountSchema:
    """Start a session of a user who has proved who they are; returns the account."""
    start_session(request, response, access, requester, user, method)
    browser_known = remember_browser(request, response, services.box, user.id)
    tasks.add_task(_send_mail, access, services, user, requester, browser_known)
    return account_of(access, user.id)


def required_party(request: Request, services: AccountServices) -> RelyingParty:
    """Return the server as passkeys know it, or raise 409 where browsers allow none."""
    party = services.relying_party(request)
    if party is None:
        raise HTTPException(409, "passkeys need the setting url of this server, with https and a host name")
    return party


def refusal(error: sign_in.SignInRefused, request: Request, services: AccountServices) -> HTTPException:
    """Return the response to a sign-in that was refused."""
    if isinstance(error, sign_in.TooManyAttempts):
        return too_many(str(error), error.wait_s)
    if isinstance(error, sign_in.SignInNotAllowed):
        return HTTPException(403, str(error))
    if isinstance(error, sign_in.SecondFactorNeeded):
        factors = factors_of(error.user_id, error.kinds, request, services)
        return DetailedError(401, str(error), {"second_factor": True, **factors.model_dump()})
    return HTTPException(401, str(error))


def factors_of(
    user_id: int, kinds: tuple[FactorKind, ...], request: Request, services: AccountServices
) -> FactorsSchema:
    """Return the second factors that a user may choose from."""
    party = services.relying_party(request)
    options = None
    if party is not None and "passkey" in kinds:
        options = services.sign_in.passkeys.asking(party, user_id, PURPOSE, verified=False)
    return FactorsSchema(code="code" in kinds, passkey=options)


def _send_mail(
    access: AccessControl, services: AccountServices, user: UserRow, requester: Requester, browser_known: bool
) -> None:
    """Mail what the sign-in calls for, after the response."""
    accounts, now_ms = access.accounts, access.clock()
    if user.state == "unverified":
        primary = accounts.emails.primary(user.id)
        if primary is not None:
            services.send_verification(user.name, primary, now_ms)
    elif not browser_known and user.last_seen_ms is not None:
        report_new_browser(access, services.notices(), user, requester)
