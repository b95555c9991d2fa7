"""Sites of the organisation's choice may frame reports, and nothing else."""

from __future__ import annotations

from tests.server.accounts_server import AccountsServer

WIKI = "https://wiki.example.org"


def test_only_chosen_sites_may_frame_only_reports(server: AccountsServer) -> None:
    with server.client() as client:

        def policy(path: str) -> tuple[str, str | None]:
            headers = client.get(f"{server.url}{path}").headers
            ancestors = headers["content-security-policy"].rpartition("frame-ancestors ")[2]
            return ancestors, headers.get("x-frame-options")

        embedded = "/-/embed/reports/1"
        assert policy(embedded) == ("'none'", "DENY")
        server.ask("olga", "PUT", "organisation/settings", json={"embed_origins": [WIKI, "http://a.test:81"]})
        assert policy(embedded) == (f"http://a.test:81 {WIKI}", None)
        for path in ("/", "/-/shared", "/vision/digits/reports/Rates--1", "/api/v1/about", "/-/embedded"):
            assert policy(path) == ("'none'", "DENY"), path
        response = client.get(f"{server.url}{embedded}")
        if response.status_code != 503:  # the page was never built
            assert response.headers["x-robots-tag"] == "noindex"


def test_what_is_not_a_site_is_refused(server: AccountsServer) -> None:
    for origin in (
        "*",
        "https://*.example.org",
        f"{WIKI}/page",
        "wiki.example.org",
        "https://a b",
        "data:",
        5,
    ):
        body = {"embed_origins": [origin]}
        problems = server.ask("olga", "PUT", "organisation/settings", 422, json=body)["fields"]
        assert WIKI in problems["embed_origins"]
