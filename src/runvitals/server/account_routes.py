"""The routes that only a shared server has: they load the tables of accounts."""

from __future__ import annotations

from typing import Final

from runvitals.server.http.router import RouterModule

_API = "/api/v1"
ACCOUNT_ROUTERS: Final = (
    RouterModule(
        "accounts.routes.routers",
        (f"{_API}/auth/", f"{_API}/account", f"{_API}/users", f"{_API}/teams/", f"{_API}/organisation/"),
    ),
    RouterModule("sign_on.routes.routers", (f"{_API}/auth/", f"{_API}/account/", f"{_API}/organisation/")),
    RouterModule(
        "teams.routes.routers",
        (
            f"{_API}/teams",
            f"{_API}/team-requests",
            f"{_API}/invitations/",
            f"{_API}/account/",
            f"{_API}/entities/",
            f"{_API}/organisation/",
        ),
    ),
    RouterModule(
        "organisation.routes.routers", (f"{_API}/organisation", f"{_API}/teams/", f"{_API}/account/")
    ),
    RouterModule(
        "projects.routes.routers",
        (f"{_API}/entities", f"{_API}/projects/", f"{_API}/runs/", f"{_API}/shared", f"{_API}/views"),
    ),
    RouterModule(
        "alerts.routes.routers",
        (
            f"{_API}/account/",
            f"{_API}/teams/",
            f"{_API}/mute/",
            f"{_API}/entities/",
            f"{_API}/organisation/",
        ),
    ),
    RouterModule(
        "usage.routes.routers",
        (f"{_API}/usage", f"{_API}/billing", f"{_API}/storage", f"{_API}/account/", f"{_API}/teams/"),
    ),
    RouterModule("accounts.routes.shown_images", ("/-/picture/", "/-/image/")),
    RouterModule("doors.scim.routes", ("/scim/v2/",)),
)
