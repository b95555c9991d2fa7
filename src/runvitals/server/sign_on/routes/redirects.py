"""`/auth/{provider}`: the way to a provider and back."""

from __future__ import annotations

from typing import Annotated, Final
from urllib.parse import quote

from fastapi import BackgroundTasks, HTTPException, Query, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import Field

from runvitals.server.access.actions import PUBLIC
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs, with_accounts
from runvitals.server.access.requester import Requester
from runvitals.server.account_services import AccountServices
from runvitals.server.accounts.attempt_limits import network_of
from runvitals.server.accounts.routes import pending_sign_in
from runvitals.server.accounts.routes.account_schema import AccountSchema, SignedInSchema, account_of
from runvitals.server.accounts.routes.session_cookies import (
    browser_of,
    is_secure,
    remember_browser,
    renew_session,
    report_new_browser,
    start_session,
)
from runvitals.server.accounts.routes.sign_in import (
    Code,
    FactorsSchema,
    Passkey,
    factors_of,
    refusal,
    sign_in_user,
)
from runvitals.server.accounts.second_factors import FactorProof
from runvitals.server.accounts.sign_in import Attempt, SignInRefused
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.errors import DetailedError, answering
from runvitals.server.http.router import Router
from runvitals.server.mail import messages
from runvitals.server.mail.notices import Notices
from runvitals.server.outside_services import OutsideServices
from runvitals.server.service_parameters import (
    TheAccess,
    TheNotices,
    TheOutsideServices,
    TheRequester,
    TheServices,
)
from runvitals.server.sign_on.discovery import ProviderFailed
from runvitals.server.sign_on.outcomes import (
    Confirmed,
    Linked,
    LinkNeeded,
    Outcome,
    Refused,
    SecondFactorAsked,
    SignedIn,
    SignOnStart,
)
from runvitals.server.sign_on.sign_on import COOKIE, COOKIE_S, UnknownProvider

PAGE: Final = "/-/login"
SECOND_FACTOR: Final = "second-factor"
"""The fragment of `PAGE` where it asks for the second factor."""
_STARTS: Final = "provider"

router = Router()


class ProviderStart(RequestBody):
    """Where the page goes after a sign-in, and an invitation that it accepts."""

    next: str = Field("/", max_length=2000)
    invitation: str | None = Field(None, max_length=200)


class SignOnConfirmation(RequestBody):
    """The secret of a login to link, and what proves whose the account is."""

    secret: str = Field(max_length=200)
    password: str = Field(min_length=1, max_length=1024)
    code: Code = None
    passkey: Passkey = None


class SecondFactor(RequestBody):
    """A code, or the response of a passkey."""

    code: Code = None
    passkey: Passkey = None


class ProviderAddress(ResponseBody):
    """Where the browser goes to sign in at a provider."""

    url: str


@router.get("/auth/{provider}/start", needs(PUBLIC), with_accounts(), status_code=302)
async def start(
    provider: str,
    request: Request,
    requester: TheRequester,
    services: TheServices,
    outside: TheOutsideServices,
    next: Annotated[str, Query(max_length=2000)] = "/",
) -> Response:
    """Send the browser to a provider to sign in."""
    services.limit(_STARTS, network_of(requester.ip))
    try:
        begun = await outside.workers.run(lambda: outside.sign_on.start(provider, next_path=next))
    except UnknownProvider as error:
        raise HTTPException(404, str(error)) from None
    except (ProviderFailed, ValueError):
        return _to_page(Refused("provider", next))
    return with_cookie(request, RedirectResponse(begun.url, 302), begun)


@router.post("/auth/{provider}/start", needs(PUBLIC), with_accounts())
async def start_with_invitation(
    provider: str,
    body: ProviderStart,
    request: Request,
    response: Response,
    requester: TheRequester,
    services: TheServices,
    outside: TheOutsideServices,
) -> ProviderAddress:
    """The address of a provider to sign in, for a page that has an invitation in its fragment."""
    services.limit(_STARTS, network_of(requester.ip))
    return await begin(
        request,
        response,
        outside,
        provider,
        next_path=body.next,
        invitation=body.invitation,
        link_user_id=None,
    )


@router.get("/auth/{provider}/callback", needs(PUBLIC), with_accounts(), status_code=302)
async def callback(
    provider: str,
    request: Request,
    requester: TheRequester,
    access: TheAccess,
    services: TheServices,
    outside: TheOutsideServices,
    notices: TheNotices,
) -> Response:
    """Where a provider sends the browser back to."""
    parameters = dict(request.query_params)
    cookie = request.cookies.get(_cookie(request))

    def finish() -> Response:
        outcome = outside.sign_on.finish(
            provider,
            parameters,
            cookie,
            signed_in=requester.user_id if requester.via == "session" else None,
            ip=requester.ip,
            agent=requester.agent,
        )
        return _respond(request, outcome, access, services, requester, notices)

    with answering(404, UnknownProvider):
        response = await outside.workers.run(finish)
    response.delete_cookie(_cookie(request), path="/", secure=is_secure(request), httponly=True)
    return response


@router.post("/auth/link", needs(PUBLIC), with_accounts())
async def confirm_link(
    body: SignOnConfirmation,
    request: Request,
    response: Response,
    requester: TheRequester,
    access: TheAccess,
    services: TheServices,
    outside: TheOutsideServices,
    notices: TheNotices,
) -> SignedInSchema:
    """Link a login to the account that has its address, by the password of that account; signs in."""

    def check_and_link() -> AccountSchema:
        user_id = services.of_link(requester.ip, lambda: outside.sign_on.confirming_user(body.secret))
        user = access.accounts.users.get(user_id)
        services.sign_in.check(
            Attempt(
                user.name,
                body.password,
                FactorProof(body.code, body.passkey, services.relying_party(request)),
                requester.ip,
                browser_of(request, services.box),
                requester.actor,
            )
        )
        password = access.accounts.credentials.password(user.id)
        if password is not None and password.must_change:
            raise PasswordChangeFirst()
        linked = outside.sign_on.confirm(body.secret, ip=requester.ip, agent=requester.agent)
        start_session(request, response, access, requester, user, linked.login.provider)
        remember_browser(request, response, services.box, user.id)
        notices.to_user(user.id, messages.login_linked(user.name, linked.login.provider))
        return account_of(access, user.id)

    try:
        return SignedInSchema(account=await services.hashing(check_and_link), next="/")
    except SignInRefused as error:
        raise refusal(error, request, services) from None


@router.get("/auth/second-factor", needs(PUBLIC), with_accounts())
def second_factors(request: Request, access: TheAccess, services: TheServices) -> FactorsSchema:
    """The second factors that the sign-in by a provider waits for, which this browser began."""
    pending = pending_sign_in.pending_of(request, services.box, access.clock())
    kinds = services.sign_in.second_factors.kinds(pending.user_id)
    return factors_of(pending.user_id, kinds, request, services)


@router.post("/auth/second-factor", needs(PUBLIC), with_accounts())
def finish_with_second_factor(
    body: SecondFactor,
    request: Request,
    response: Response,
    tasks: BackgroundTasks,
    requester: TheRequester,
    access: TheAccess,
    services: TheServices,
    outside: TheOutsideServices,
    notices: TheNotices,
) -> SignedInSchema:
    """Finish a sign-in by a provider with the second factor of the account."""
    pending = pending_sign_in.pending_of(request, services.box, access.clock())
    proof = FactorProof(body.code, body.passkey, services.relying_party(request))
    browser = browser_of(request, services.box)
    try:
        user = services.sign_in.check_after_provider(
            pending.user_id, proof, requester.ip, browser, requester.actor
        )
        if pending.offer is not None:
            linked = outside.sign_on.confirm(pending.offer, ip=requester.ip, agent=requester.agent)
            notices.to_user(user.id, messages.login_linked(user.name, linked.login.provider))
    except SignInRefused as error:
        raise refusal(error, request, services) from None
    account = sign_in_user(request, response, tasks, requester, access, services, user, pending.provider)
    pending_sign_in.forget(request, response)
    return SignedInSchema(account=account, next=pending.next_path)


class PasswordChangeFirst(DetailedError):
    """The password was set by an administrator, who may know it: 403. It links nothing."""

    def __init__(self) -> None:
        text = "an administrator set this password: sign in with it, change it, and then link the login"
        super().__init__(403, text, {"must_change_password": True})


async def begin(
    request: Request,
    response: Response,
    outside: OutsideServices,
    provider: str,
    *,
    next_path: str,
    invitation: str | None,
    link_user_id: int | None,
    confirmed_session_id: int | None = None,
) -> ProviderAddress:
    """Begin a sign-in at a provider; returns where the browser goes.

    Args:
        response: gets the cookie of the sign-in.
        confirmed_session_id: see `SingleSignOn.start`.

    Raises:
        HTTPException: 404 for an unknown provider, 502 if it cannot be used.
    """
    try:
        begun = await outside.workers.run(
            lambda: outside.sign_on.start(
                provider,
                next_path=next_path,
                invitation=invitation,
                link_user_id=link_user_id,
                confirmed_session_id=confirmed_session_id,
            )
        )
    except UnknownProvider as error:
        raise HTTPException(404, str(error)) from None
    except (ProviderFailed, ValueError):
        raise HTTPException(502, f"{provider} cannot be used at the moment; see the server's log") from None
    with_cookie(request, response, begun)
    return ProviderAddress(url=begun.url)


def with_cookie(request: Request, response: Response, begun: SignOnStart) -> Response:
    """Return a response that remembers in the browser which sign-in it began."""
    response.set_cookie(
        _cookie(request),
        begun.cookie,
        max_age=COOKIE_S,
        path="/",
        secure=is_secure(request),
        httponly=True,
        samesite="lax",  # the provider's redirect is a navigation from another site
    )
    return response


def _respond(
    request: Request,
    outcome: Outcome,
    access: AccessControl,
    services: AccountServices,
    requester: Requester,
    notices: Notices,
) -> Response:
    if isinstance(outcome, SignedIn):
        access.rights_changed()
        response = RedirectResponse(outcome.next_path, 302)
        user = access.accounts.users.get(outcome.user_id)
        start_session(request, response, access, requester, user, outcome.provider)
        browser_known = remember_browser(request, response, services.box, user.id)
        if not browser_known and not outcome.created:
            report_new_browser(access, notices, user, requester)
        return response
    if isinstance(outcome, SecondFactorAsked):
        access.rights_changed()
        query = f"?next={quote(outcome.next_path, safe='')}"
        response = RedirectResponse(f"{PAGE}{query}#{SECOND_FACTOR}", 302)
        pending_sign_in.remember(
            request,
            response,
            services.box,
            outcome.user_id,
            outcome.provider,
            outcome.next_path,
            outcome.offer,
            access.clock(),
        )
        return response
    if isinstance(outcome, Confirmed):
        return _confirm(request, outcome, access, requester)
    if isinstance(outcome, Linked):
        access.rights_changed()
        user = access.accounts.users.get(outcome.login.user_id)
        notices.to_user(user.id, messages.login_linked(user.name, outcome.login.provider))
        return RedirectResponse(outcome.next_path, 302)
    return _to_page(outcome)


def _confirm(
    request: Request, outcome: Confirmed, access: AccessControl, requester: Requester
) -> RedirectResponse:
    if requester.session is None or requester.session.id != outcome.session_id:
        return _to_page(Refused("state", outcome.next_path))
    response = RedirectResponse(outcome.next_path, 302)
    renew_session(request, response, access, outcome.session_id)
    access.accounts.audit.record(access.clock(), requester.actor, "user.sudo")
    return response


def _to_page(outcome: LinkNeeded | Refused) -> RedirectResponse:
    """Return the sign-in page with what to say there; a secret is in the fragment, which no log sees."""
    query = f"?next={quote(outcome.next_path, safe='')}"
    if isinstance(outcome, LinkNeeded):
        return RedirectResponse(f"{PAGE}{query}&provider={outcome.provider}#link={outcome.secret}", 302)
    return RedirectResponse(f"{PAGE}{query}&error={outcome.code}", 302)


def _cookie(request: Request) -> str:
    return f"__Host-{COOKIE}" if is_secure(request) else COOKIE
