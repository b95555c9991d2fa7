"""Made-up requests: by pages of other sites, with false headers, with more fields than are asked for."""

from __future__ import annotations

import gc
import gzip
import ipaddress
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from runvitals.server.audit.storage.audit import CLI, AuditFilter
from tests.patience import PATIENCE_S
from tests.processor_time import measured
from tests.server.access.declared_routes import declared_routes
from tests.server.access.organisation import NOW, TEAM, ServedOrganisation
from tests.server.accounts.routes.people import PASSWORD, People, serving_people, token_in

OF_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", "")
"""What a page of another site can send without asking; the last by `navigator.sendBeacon`."""
OTHER_SITE = {"origin": "https://evil.example", "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    with serving_people(tmp_path_factory.mktemp("people")) as people:
        yield people


def test_no_route_changes_anything_for_a_page_of_another_site(served: ServedOrganisation) -> None:
    """Every changing route with an administrator's session, as forms and scripts elsewhere can send it."""
    cookie = {"cookie": f"runvitals_session={served.sign_in('rita')}"}
    before = served.accounts.audit.page(AuditFilter(), 1)
    checked = 0
    with httpx.Client(base_url=served.url, timeout=PATIENCE_S) as client:
        for route in declared_routes(served.served.app.api.routes):
            if route.method in ("GET", "OPTIONS"):
                continue
            path = route.path.replace(":path", "")
            for name in route.parameters:
                path = path.replace(
                    f"{{{name}}}", {"team": TEAM, "entity": TEAM, "run": "team-bob"}.get(name, "1")
                )
            for content_type in (*OF_FORMS, "application/json"):
                headers = {**cookie, **OTHER_SITE, "content-type": content_type}
                response = client.request(route.method, path, headers=headers, content='{"name": "x"}')
                expected = (401, 403) if path.startswith(("/scim/", "/api/v1/ingest")) else (403,)
                assert response.status_code in expected, (str(route), content_type, response.status_code)
                assert "set-cookie" not in response.headers
            checked += 1
    assert checked >= 90
    assert served.accounts.audit.page(AuditFilter(), 1) == before


def test_a_cookie_of_a_sibling_site_does_not_replace_the_session(served: ServedOrganisation) -> None:
    """Pages at other names of the same domain can set cookies for this server, but none of a __Host- name."""
    own, planted = served.sign_in("bob"), served.sign_in("otto")
    for cookies in (
        f"runvitals_session={planted}; __Host-runvitals={own}",
        f"__Host-runvitals={own}; runvitals_session={planted}; __host-runvitals={planted}",
    ):
        headers = {"cookie": cookies, "x-forwarded-proto": "https"}
        response = httpx.get(f"{served.url}/api/v1/account", headers=headers, timeout=PATIENCE_S)
        assert response.json()["name"] == "bob"


@pytest.mark.parametrize(
    "forwarded",
    [
        "unknown",
        "_hidden",
        "<script>alert(1)</script>",
        "' OR 1=1 --",
        "a" * 5000,
        "1.2.3.4:80",
        "[2001:db8::1]:443",
        "fe80::1%eth0",
        "%00",
        ",,,",
        "203.0.113.7\t, x",
        "é",
    ],
)
def test_what_a_proxy_says_of_the_client_is_an_address_or_nothing(people: People, forwarded: str) -> None:
    browser = people.browser(headers={"x-forwarded-for": forwarded.encode("latin-1")})
    assert browser.sign_in("rita").status_code == 200
    ip = browser.get("/account/sessions").json()["sessions"][0]["ip"]
    assert ip == "" or ipaddress.ip_network(ip)


@pytest.mark.parametrize("scheme", ["javascript", "https, http", "file", "https://evil.example", ""])
def test_a_scheme_that_no_proxy_sends_is_not_taken_as_tls(people: People, scheme: str) -> None:
    browser = people.browser(headers={"x-forwarded-proto": scheme})
    signed_in = browser.sign_in("rita")
    assert signed_in.status_code == 200
    assert "__Host-" not in signed_in.headers["set-cookie"]


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"x-forwarded-host": "evil.example"},
        {"forwarded": "host=evil.example;proto=https"},
        {"x-original-url": "https://evil.example/", "x-rewrite-url": "https://evil.example/"},
        {"host": "runs.lab.example@evil.example"},
    ],
)
def test_links_in_mails_begin_with_the_address_that_was_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, headers: dict[str, str]
) -> None:
    with serving_people(tmp_path) as people, people.mail:
        monkeypatch.setenv("RUNVITALS_SMTP_URL", people.mail.url)
        monkeypatch.setenv("RUNVITALS_MAIL_FROM", "runs@lab.example")
        monkeypatch.setenv("RUNVITALS_URL", "https://runs.lab.example")
        people.add("ada")
        people.browser(headers=headers).post("/auth/reset", json={"email": "ada@lab.example"})
        message = people.mail_to("ada@lab.example", 1)
        assert token_in(message)
        for part in message.walk():
            assert "evil" not in str(part.get_payload())
        text = message.get_body(("plain",))
        assert text is not None
        assert "https://runs.lab.example/-/reset#" in text.get_content()


PRIVILEGES: dict[str, Any] = {
    "id": 1,
    "user_id": 1,
    "org_role": "admin",
    "access": "full",
    "billing_role": "admin",
    "state": "active",
    "teams": [{"name": TEAM, "role": "admin"}],
    "verified": True,
    "password_hash": "x",
    "may": ["org:settings"],
    "author_id": 1,
    "entity_id": 1,
    "deleted_ms": None,
    "created_ms": 0,
    "role": "admin",
}
"""Fields that requests do not set, as tables and responses name them."""


CHECKED_BY_NAME = ("/api/v1/ingest", "/api/v1/organisation/settings")
"""Routes that reject unknown fields themselves."""


def test_no_request_sets_more_than_its_route_offers(served: ServedOrganisation) -> None:
    """Every JSON body of the document is closed, so that a field of a table is never set by its name."""
    document = served.served.app.api.openapi()
    schemas = document["components"]["schemas"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if content is None or path in CHECKED_BY_NAME:
                continue
            name = content["schema"].get("$ref", "").rpartition("/")[2]
            assert name, (method, path, content)
            assert schemas[name].get("additionalProperties") is False, (method, path, name)


@pytest.mark.parametrize(
    ("who", "method", "path"),
    [
        ("carol", "PATCH", "/api/v1/account/profile"),
        ("alice", "PATCH", f"/api/v1/teams/{TEAM}"),
        ("alice", "PATCH", f"/api/v1/teams/{TEAM}/profile"),
        ("alice", "PATCH", f"/api/v1/entities/{TEAM}/projects/team"),
        ("bob", "PATCH", "/api/v1/runs/team-bob"),
        ("carol", "POST", "/api/v1/account/api-keys"),
        ("rita", "PUT", "/api/v1/organisation/settings"),
    ],
)
def test_fields_that_give_rights_are_rejected(
    served: ServedOrganisation, who: str, method: str, path: str
) -> None:
    headers = {"cookie": f"runvitals_session={served.sign_in(who)}", "sec-fetch-site": "same-origin"}
    before = served.accounts.user_grants(served.users[who], NOW)
    for field, value in PRIVILEGES.items():
        response = httpx.request(
            method,
            f"{served.url}{path}",
            json={"name": "x", field: value},
            headers=headers,
            timeout=PATIENCE_S,
        )
        assert response.status_code == 422, (field, response.text)
    assert served.accounts.user_grants(served.users[who], NOW) == before


NAMES = (
    "..",
    ".",
    "...",
    "a/../b",
    "..%2f",
    "%2e%2e",
    "\u0430lice",
    "\uff41lice",
    "alice\u200d",
    "alice\u3164",
    "al\u0131ce",
    "-",
    "~root",
    "con:",
)
"""Paths, and names that look like `alice`."""


@pytest.mark.parametrize("name", NAMES)
def test_names_that_are_paths_or_look_like_others_are_rejected(people: People, name: str) -> None:
    people.set(signup="open", team_creation="members")
    rita = people.browser("rita")
    team = rita.post("/teams", json={"name": name})
    assert (team.status_code, list(team.json()["fields"])) == (422, ["name"])
    body = {"name": name, "email": "new@lab.example", "password": PASSWORD}
    people.pass_s(3600)  # a client may try only so many names an hour
    user = people.browser().post("/auth/signup", json=body)
    assert (user.status_code, list(user.json()["fields"])) == (422, ["name"])


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/entities/%2e%2e/projects/%2e%2e",
        "/api/v1/entities/vision%2f..%2fspeech/projects/voice",
        "/api/v1/entities/vision/../speech/projects/voice",
        "/api/v1/teams/..%2forganisation%2fsettings",
        "/api/v1//organisation/settings",
        "/api/v1/runs/..%2f..%2forganisation/settings",
        "/api/v1/projects/..%2f..%2f..%2fetc%2fpasswd",
        "/-/picture/..%2f..%2fcatalogue.db",
        "/assets/..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/../../etc/passwd",
        "/assets/%00",
    ],
)
def test_paths_do_not_climb(served: ServedOrganisation, path: str) -> None:
    """Sent as they are: clients would shorten them."""
    key = served.keys["carol"]
    head = (
        f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\r\n"
    )
    response = served.served.say(head.encode())
    status = int(response.split(b" ", 2)[1])
    assert status < 500
    assert b"voice" not in response.split(b"\r\n\r\n", 1)[1].replace(path.encode(), b"") or status == 404
    assert b"root:" not in response
    assert b"smtp_url" not in response


def test_text_that_would_end_a_header_of_a_mail_is_rejected(served: ServedOrganisation) -> None:
    for text in ("x\r\nBcc: all@evil.example", "x\nBcc: y", "x\0", "\u202efdp.exe"):
        for who, path, field in (
            ("alice", f"/api/v1/teams/{TEAM}", "display_name"),
            ("carol", "/api/v1/account/profile", "display_name"),
        ):
            headers = {"cookie": f"runvitals_session={served.sign_in(who)}", "sec-fetch-site": "same-origin"}
            response = httpx.patch(
                f"{served.url}{path}", json={field: text}, headers=headers, timeout=PATIENCE_S
            )
            assert (response.status_code, list(response.json()["fields"])) == (422, [field])
    assert served.accounts.users.by_name("carol").display_name in ("", "carol")
    served.accounts.users.update(served.users["carol"], CLI, NOW, display_name="Carol")


def test_a_long_wrong_value_is_not_searched_for_secrets_as_a_whole(served: ServedOrganisation) -> None:
    def times(value: list[str]) -> float:
        """The cost of a request of a stranger that is rejected because of a value."""
        with measured(time.process_time) as cost:
            url = f"{served.url}/api/v1/auth/login"
            response = httpx.post(url, json={"name": value, "password": "x"}, timeout=PATIENCE_S)
        assert response.status_code == 422
        assert response.json()["error"].startswith("name=['x=y x=y"), response.text
        assert len(response.text) < 2000
        return cost.times

    times(["x=y x=y"])  # loads the routes
    assert times(["x=y " * 250_000]) < 25, "to search all of it takes several times as long"


@pytest.mark.parametrize(
    ("path", "body", "encoding"),
    [
        ("POST /api/v1/entities/vision/projects/none/reports", b'{"title": "%s"}', ""),
        ("POST /api/v1/ingest", b'{"run": "%s"}', "gzip"),
        ("POST /api/2.0/mlflow/runs/log-batch", b'{"run_id": "%s"}', ""),
        ("POST /graphql", b'{"query": "%s"}', "gzip"),
        ("POST /files/vision/none/run/file_stream", b'{"files": "%s"}', "gzip"),
        ("POST /v1/metrics", b'{"resourceMetrics": "%s"}', "gzip"),
        ("POST /api/v1/write", b"%s", "gzip"),
    ],
)
def test_what_a_refused_request_sent_stays_in_memory_no_longer(
    served: ServedOrganisation, path: str, body: bytes, encoding: str
) -> None:
    """A circle of references would keep it until thousands of objects wait for the garbage collector."""
    sent = body % (b"x" * 900_000)
    sent = gzip.compress(sent, 1) if encoding else sent
    head = f"{path} HTTP/1.1\r\nhost: {served.url[7:]}\r\nauthorization: Bearer {served.keys['carol']}\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(sent)}\r\nconnection: close\r\n"
    head += f"content-encoding: {encoding}\r\n\r\n" if encoding else "\r\n"
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        assert b"HTTP/1.1 " in served.served.say(head.encode() + sent)
        gc.collect()
        kept = [part for each in gc.garbage for part in gc.get_referents(each)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert [type(part) for part in kept if isinstance(part, (str, bytes)) and len(part) > 100_000] == []
