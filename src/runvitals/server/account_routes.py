"""The routes that only a shared server has, by feature: they load the tables of accounts."""

from __future__ import annotations

from typing import Final

from runvitals.server.http.router import RouterModule

_API: Final = "/api/v1"


def _feature(name: str, modules: str, *beginnings: str) -> RouterModule:
    """The routes of a feature. `modules`: of its `routes`, in the order in which they are asked."""
    return RouterModule(
        f"{name}.routes", tuple(_API + path for path in beginnings), tuple(modules.split()), _API
    )


ACCOUNT_ROUTERS: Final = (
    _feature(
        "accounts",
        "sign_in sudo sign_up setup password_reset device_login account profile export pictures password "
        "sessions emails api_keys second_factor passkeys beta users",
        "/auth/",
        "/account",
        "/users",
        "/teams/",
        "/organisation/",
    ),
    _feature("sign_on", "redirects logins providers issuers", "/auth/", "/account/", "/organisation/"),
    _feature(
        "teams",
        "teams members settings profile entity_page projects invitations received_invitations joining "
        "service_accounts",
        "/teams",
        "/team-requests",
        "/invitations/",
        "/account/",
        "/entities/",
        "/organisation/",
    ),
    _feature("mail", "mail", "/organisation/mail"),
    _feature(
        "organisation",
        "settings members invitations teams roles keys scim_secret",
        "/organisation",
    ),
    _feature("audit", "audit audit_webhook", "/organisation/audit", "/teams/", "/account/"),
    _feature(
        "artifacts",
        "search artifacts lineage logged_items deletions time_to_live portfolios",
        "/artifacts",
        "/entities/",
        "/projects/",
        "/runs/",
    ),
    _feature("buckets", "buckets team_storage", "/organisation/buckets", "/teams/"),
    _feature(
        "registry",
        "registries members collections versions requests",
        "/teams/",
        "/registries",
    ),
    _feature(
        "projects",
        "owned_projects members links shared views routing_rules",
        "/entities",
        "/projects/",
        "/runs/",
        "/shared",
        "/views",
    ),
    _feature("runs", "project_runs", "/runs/"),
    _feature("sweeps", "sweep_runs sweeps", "/entities/", "/projects/"),
    _feature(
        "reports", "lists versions files comments sharing panels editing reports", "/reports", "/entities/"
    ),
    _feature(
        "alerts",
        "inbox personal own_slack slack_install slack_app team trial_messages mute firings rules "
        "team_secrets destinations automations notifications",
        "/account/",
        "/teams/",
        "/mute/",
        "/entities/",
        "/organisation/",
    ),
    _feature(
        "usage",
        "usage own_usage team_usage rates plans billing cost_centres payments statements storage",
        "/usage",
        "/billing",
        "/storage",
        "/account/",
        "/teams/",
    ),
    _feature("findings", "lost_hours", "/lost-hours", "/billing/lost-hours"),
    RouterModule("accounts.routes.shown_images", ("/-/picture/", "/-/image/")),
    RouterModule("doors.scim.routes", ("/scim/v2/",)),
)
