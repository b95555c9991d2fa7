"""`RoutesInProcess`: the API's routes about accounts, for a command that has the database.

A command needs no server and opens no socket: it calls the functions of the routes in its own process, as the
principal `CommandLine`. So there is one implementation of what is valid, what is recorded and who gets mail.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from runvitals.server.access.control import AccessControl
from runvitals.server.access.decisions.directory import Directory
from runvitals.server.access.principals import CommandLine
from runvitals.server.access.requester import SCOPE_KEY, Requester
from runvitals.server.database.secret_box import SecretBox
from runvitals.server.http.application_call import response_of
from runvitals.server.http.errors import field_name
from runvitals.server.http.router import LazyRoute, Router
from runvitals.server.mail.notices import Notices
from runvitals.server.metadata_store import MetadataStore

if TYPE_CHECKING:
    from runvitals.server.mail.storage.drafts import MailDraftTable
    from runvitals.server.outside_services import OutsideServices
    from runvitals.server.usage.reports import UsageReports
    from runvitals.server.usage.statements import Statements

_PROJECT: Final = "/entities/{entity}/projects/{project}"
_MODULES: Final = {
    "/usage": "usage.routes.usage",
    "/billing/statements": "usage.routes.statements",
    "/organisation/roles": "organisation.routes.roles",
    "/organisation/members": "organisation.routes.members",
    "/organisation/teams": "organisation.routes.teams",
    "/organisation/api-keys": "organisation.routes.keys",
    "/organisation/invitations": "organisation.routes.invitations",
    "/organisation/audit": "audit.routes.audit",
    "/organisation/settings": "organisation.routes.settings",
    "/organisation/names": "organisation.routes.members",
    "/organisation/scim-secret": "organisation.routes.scim_secret",
    "/organisation/issuers": "sign_on.routes.issuers",
    "/organisation/service-accounts": "teams.routes.service_accounts",
    "/teams/{team}/service-accounts": "teams.routes.service_accounts",
    "/teams/{team}/members": "teams.routes.members",
    "/teams/{team}/invitations": "teams.routes.invitations",
    "/teams": "teams.routes.teams",
    f"{_PROJECT}/members": "projects.routes.members",
    f"{_PROJECT}/links": "projects.routes.links",
    "/entities/{entity}": "projects.routes.owned_projects",
}
"""The modules of the routes that commands call, by how their paths begin: the first that fits."""


class _NoKeys(SecretBox):
    """Encrypts nothing: a command does not have the keys of the server, which could not read it."""

    def __init__(self) -> None:
        super().__init__({"none": bytes(32)})

    def seal(self, secret: bytes, purpose: str) -> bytes:
        name = purpose.rpartition(":")[2]
        raise ValueError(f"{name} is stored encrypted, with keys that the server has: change it there")


@dataclass
class _CommandServices:
    """The part of `SharedServices` that these routes work with."""

    access: AccessControl
    box: SecretBox

    @property
    def account_services(self) -> _CommandServices:
        return self

    @property
    def library(self) -> _CommandServices:
        return self

    @cached_property
    def outside_services(self) -> OutsideServices:
        from runvitals.server.outside_services import OutsideServices

        access = self.access
        return OutsideServices(
            access.metadata_store, self.box, access.clock, time.monotonic, lambda user_id: False
        )

    @cached_property
    def usage_reports(self) -> UsageReports:
        from runvitals.server.usage.reports import UsageReports

        return UsageReports(self.access.metadata_store, self.access.clock)

    @cached_property
    def statements(self) -> Statements:
        from runvitals.server.usage.statements import Statements

        return Statements(self.access.metadata_store, self.access.clock)

    @property
    def mailer(self) -> MailDraftTable:
        """Keeps mail until a server sends it."""
        return self.access.accounts.mail_drafts

    def notices(self) -> Notices:
        """Mail to users, as drafts."""
        return Notices(self.access.accounts, self.mailer, self.access.clock())

    def refresh(self) -> None:
        """Do nothing: a command has no runs open. Servers see what changed by the generation of rights."""

    def close(self) -> None:
        if "outside_services" in vars(self):
            self.outside_services.close()


class RoutesInProcess:
    """Calls routes as `CommandLine`. Close it.

    Args:
        clock: the time now, ms UTC.

    Example:
        >>> with closing(RoutesInProcess(metadata_store, now_ms)) as routes:
        ...     routes.send("DELETE", "/organisation/roles/{role}", {"role": "Labeller"}, None)
        {'people': 0}
    """

    def __init__(self, metadata_store: MetadataStore, clock: Callable[[], int]) -> None:
        access = AccessControl(metadata_store, Directory(metadata_store, clock, time.monotonic), clock)
        self._services = _CommandServices(access, _NoKeys())
        self._called: dict[tuple[str, str], tuple[FastAPI, _ChosenRoute]] = {}

    def send(
        self,
        method: str,
        path: str,
        names: Mapping[str, str],
        body: Any,
        parameters: Iterable[tuple[str, Any]] = (),
    ) -> Any:
        """Return the JSON of the response, or its text; None if it has no content.

        The change, its rows in the audit log and the drafts of its mail are written together or not at all.

        Args:
            path: below `/api/v1`, as the route declares it.
            names: the values of the parameters of its path.
            parameters: of the query; None is left out.

        Raises:
            LookupError, ValueError: the route refused it; as the storage raised it, if it did.
        """
        self._services.access.rights_changed()
        app, route = self._app(method, path)
        route.names = dict(names)
        query = urlencode([(name, value) for name, value in parameters if value is not None], doseq=True)
        try:
            scope = _scope(method, path, query)
            sent = asyncio.run(response_of(app, scope, b"" if body is None else json.dumps(body).encode()))
        except HTTPException as error:
            raise (LookupError if error.status_code == 404 else ValueError)(error.detail) from None
        except RequestValidationError as error:
            problems = [f"{field_name(problem['loc'][1:])}: {problem['msg']}" for problem in error.errors()]
            raise ValueError("; ".join(problems)) from None
        if not sent.content:
            return None
        is_json = sent.headers.get(b"content-type") == b"application/json"
        return json.loads(sent.content) if is_json else sent.content.decode()

    def _app(self, method: str, path: str) -> tuple[FastAPI, _ChosenRoute]:
        """Return an application with one route, and this route."""
        called = self._called.get((method, path))
        if called is None:
            app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
            app.state.services = self._services
            route = _ChosenRoute(self._in_one_transaction(_route_of(method, path)))
            app.router.routes[:] = [route]
            app.add_exception_handler(HTTPException, _raise)
            app.add_exception_handler(RequestValidationError, _raise)
            called = self._called[method, path] = app, route
        return called

    def close(self) -> None:
        """Remove what routes made for the calls. The caller closes the metadata store."""
        self._services.close()

    def _in_one_transaction(self, route: LazyRoute) -> LazyRoute:
        """The same route, whose function runs in one transaction of the database."""
        endpoint, accounts = route.endpoint, self._services.access.accounts

        @wraps(endpoint)
        def change(**arguments: Any) -> Any:
            return accounts.in_one_transaction(lambda: endpoint(**arguments))

        # FastAPI reads annotations, which are texts, in the module of the function.
        change.__signature__ = inspect.signature(endpoint, eval_str=True)  # type: ignore[attr-defined]
        joined = route.within("", (), {}, False)
        joined.endpoint = change
        return joined


class _ChosenRoute(BaseRoute):
    """A route that answers any request, with values of its parameters, which may have slashes."""

    def __init__(self, route: LazyRoute) -> None:
        self._route = route
        self.names: dict[str, str] = {}

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return Match.FULL, {"endpoint": self._route.endpoint, "path_params": self.names}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._route.handle(scope, receive, send)


def _route_of(method: str, path: str) -> LazyRoute:
    module = next(module for beginning, module in _MODULES.items() if path.startswith(beginning))
    router: Router = import_module(f"runvitals.server.{module}").router
    return next(route for route in router.routes if route.path == path and method in route.methods)


def _scope(method: str, path: str, query: str) -> Scope:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": f"/api/v1{path}",
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(b"content-type", b"application/json")],
        SCOPE_KEY: Requester(CommandLine(), name="cli", via="cli"),
    }


def _raise(request: Request, error: Exception) -> Any:
    raise error
