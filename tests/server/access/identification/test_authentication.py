"""Who a request is from: keys, sessions, links and visitors, over HTTP."""

from __future__ import annotations

import base64
import time
from functools import partial
from pathlib import Path

import anyio
import httpx
import pytest
from fastapi import Request
from starlette.responses import Response

from runvitals.server.access.enforcement.long_request import RECHECK_S
from runvitals.server.access.identification.credentials import clear_session_cookie, set_session_cookie
from runvitals.server.access.permission import needs
from runvitals.server.accounts.attempt_limits import WRONG_KEYS
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheRequester
from tests.patience import PATIENCE_S
from tests.server.access.organisation import NOW, ServedOrganisation
from tests.server.serving import serving

get = partial(httpx.get, timeout=PATIENCE_S)
patch = partial(httpx.patch, timeout=PATIENCE_S)
post = partial(httpx.post, timeout=PATIENCE_S)

RUN = "/api/v1/runs/team-bob"


def basic(password: str, user: str = "api") -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def test_a_server_has_accounts_from_its_first_administrator_on(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        assert get(f"{served.url}/api/v1/runs").json()["runs"] == []
        assert get(f"{served.url}/api/v1/about").json()["auth"] == "open"
        assert get(f"{served.url}/api/v1/about", headers={"host": "evil.example"}).status_code == 403
        served.metadata_store.accounts.users.create("root-1", CLI, NOW, org_role="admin")
        until_s = time.monotonic() + PATIENCE_S
        while get(f"{served.url}/api/v1/about").json()["auth"] != "accounts":
            assert time.monotonic() < until_s
        assert get(f"{served.url}/api/v1/runs").status_code == 401
        assert get(f"{served.url}/api/v1/about", headers={"host": "runs.example"}).status_code == 200


def test_a_key_is_its_owner(served: ServedOrganisation) -> None:
    key = served.keys["bob"]
    for headers in ({"authorization": f"bearer  {key}"}, basic(key), basic(key, "anybody")):
        assert get(served.url + RUN, headers=headers).status_code == 200, headers
    assert served.ask("otto", "GET", RUN).status_code == 404
    assert served.ask(None, "GET", RUN).status_code == 401


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer rvt-wrong", "Basic !", "Basic YXBp", "Digest x", "Bearer " + "x" * 5000],
)
def test_a_wrong_key_is_rejected_even_where_visitors_may_read(
    served: ServedOrganisation, authorization: str
) -> None:
    response = get(f"{served.url}/api/v1/about", headers={"authorization": authorization})
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    assert "rvt" not in response.text
    assert get(f"{served.url}/api/v1/about").status_code == 200


def test_a_header_counts_before_a_cookie(served: ServedOrganisation) -> None:
    cookies = {"runvitals_session": served.sign_in("bob")}
    assert get(served.url + RUN, cookies=cookies).status_code == 200
    assert get(served.url + RUN, cookies=cookies, headers=served.headers("otto")).status_code == 404
    wrong = {"authorization": "Bearer rvt-wrong"}
    assert get(served.url + RUN, cookies=cookies, headers=wrong).status_code == 401


def test_the_cookie_of_tls_counts_only_behind_tls(served: ServedOrganisation) -> None:
    secret = served.sign_in("bob")
    by_tls = {"x-forwarded-proto": "https"}
    for name, headers, status in (
        ("__Host-runvitals", by_tls, 200),
        ("runvitals_session", by_tls, 401),
        ("__Host-runvitals", {}, 401),
        ("runvitals_token", {}, 401),
    ):
        response = get(served.url + RUN, headers={"cookie": f"a=b; {name}={secret}", **headers})
        assert response.status_code == status, (name, headers)


def test_an_ended_session_is_a_visitor(served: ServedOrganisation) -> None:
    cookies = {"runvitals_session": served.sign_in("carol")}
    assert get(served.url + RUN, cookies=cookies).status_code == 200
    served.accounts.sessions.end(served.users["carol"], CLI, NOW)
    served.rights_changed()
    assert get(served.url + RUN, cookies=cookies).status_code == 401
    assert get(f"{served.url}/api/v1/about", cookies=cookies).status_code == 200


def test_a_link_reads_its_run_and_nothing_else(served: ServedOrganisation) -> None:
    run = served.metadata_store.runs.find("team-bob", NOW)
    assert run is not None
    secret, link = served.accounts.guest_links.create(CLI, NOW, run_id=run.id)
    headers = {"x-runvitals-link": secret}
    assert served.ask(None, "GET", RUN, headers=headers).status_code == 200
    assert served.ask(None, "GET", "/api/v1/runs/team-carol", headers=headers).status_code == 404
    assert served.ask(None, "DELETE", RUN, headers=headers).status_code == 403
    served.accounts.guest_links.revoke(link.id, CLI, NOW)
    served.rights_changed()
    assert served.ask(None, "GET", RUN, headers=headers).status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"origin": "{url}"}, 200),
        ({"sec-fetch-site": "same-origin", "content-type": "application/json; charset=utf-8"}, 200),
        ({}, 403),
        ({"sec-fetch-site": "none"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"sec-fetch-site": "same-origin", "content-type": "text/plain"}, 403),
        ({"sec-fetch-site": "same-origin", "content-type": "application/x-www-form-urlencoded"}, 403),
        ({"sec-fetch-site": "same-origin", "content-type": "multipart/form-data; boundary=x"}, 403),
        ({"sec-fetch-site": "same-origin", "content-type": ""}, 403),
    ],
)
def test_a_session_changes_something_only_from_our_own_pages(
    served: ServedOrganisation, headers: dict[str, str], status: int
) -> None:
    headers = {
        "content-type": "application/json",
        "cookie": f"runvitals_session={served.sign_in('bob')}",
        **{name: value.format(url=served.url) for name, value in headers.items()},
    }
    response = patch(served.url + RUN, content='{"notes": "x"}', headers=headers)
    assert response.status_code == status, response.text


def test_a_key_changes_something_from_anywhere(served: ServedOrganisation) -> None:
    assert served.ask("bob", "PATCH", RUN, json={"notes": "x"}).status_code == 200


def test_too_many_wrong_keys_do_not_stop_a_good_one(tmp_path: Path) -> None:
    with serving(tmp_path) as served, httpx.Client(timeout=PATIENCE_S) as client:
        accounts = served.metadata_store.accounts
        root = accounts.users.create("root-1", CLI, NOW, org_role="admin")
        good, _ = accounts.keys.create("laptop", CLI, NOW, user_id=root.id)
        served.app.services.access.rights_changed()
        url = f"{served.url}/api/v1/about"
        wrong = {"authorization": "Bearer rvt-wrong"}
        statuses = {client.get(url, headers=wrong).status_code for _ in range(WRONG_KEYS.free + 1)}
        assert statuses == {401}
        limited = client.get(url, headers=wrong)
        assert limited.status_code == 429
        assert int(limited.headers["retry-after"]) > 0
        assert client.get(url, headers={"authorization": f"Bearer {good}"}).status_code == 200


def test_a_revoked_key_ends_its_open_stream(served: ServedOrganisation) -> None:
    secret, key = served.accounts.keys.create("second", CLI, NOW, user_id=served.users["bob"])
    headers = {"authorization": f"Bearer {secret}"}
    with httpx.stream("GET", f"{served.url}{RUN}/live", headers=headers, timeout=PATIENCE_S) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "retry: 1000"
        served.accounts.keys.revoke(key.id, CLI, NOW)
        assert "event: unauthorised" in list(lines)
    assert get(served.url + RUN, headers=headers).status_code == 401


def test_an_ended_session_ends_a_waiting_request(served: ServedOrganisation) -> None:
    cookies = {"runvitals_session": served.sign_in("carol")}
    cursor = get(f"{served.url}{RUN}/metrics", cookies=cookies).json()["cursor"]
    url = f"{served.url}{RUN}/metrics?wait=30&after={cursor}"

    async def wait() -> int:
        async with httpx.AsyncClient(timeout=PATIENCE_S, cookies=cookies) as client:
            requested = anyio.Event()
            responses: list[int] = []

            async def ask() -> None:
                requested.set()
                responses.append((await client.get(url)).status_code)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await requested.wait()
                await anyio.to_thread.run_sync(
                    lambda: served.accounts.sessions.end(served.users["carol"], CLI, NOW)
                )
            return responses[0]

    assert anyio.run(wait) == 401


def test_metrics_of_the_server_are_for_this_machine_and_for_keys(served: ServedOrganisation) -> None:
    for path in ("/metrics", "/api/v1/openapi.json"):
        assert served.ask(None, "GET", path).status_code == 200
        assert served.ask("vera", "GET", path).status_code == 200
        by_proxy = {"x-forwarded-for": "203.0.113.9"}
        assert served.ask(None, "GET", path, headers=by_proxy).status_code == 401
        assert served.ask(None, "GET", path, headers={"host": "runs.example"}).status_code == 401
    for path in ("/healthz", "/readyz"):
        assert served.ask(None, "GET", path, headers={"host": "runs.example"}).status_code == 200


def test_ingest_takes_keys_only(served: ServedOrganisation) -> None:
    url = f"{served.url}/api/v1/ingest"
    for headers in ({}, {"cookie": f"runvitals_session={served.sign_in('bob')}"}):
        response = post(url, json={}, headers=headers)
        assert response.status_code == 401
        assert response.json()["error"] == "send `Authorization: Bearer KEY`"
    assert post(url, json={}, headers=served.headers("bob")).status_code == 400


def test_the_old_sign_in_page_leads_to_the_new_one(served: ServedOrganisation) -> None:
    response = get(f"{served.url}/login?next=%2Fruns%2Fx")
    assert (response.status_code, response.headers["location"]) == (303, "/-/login?next=%2Fruns%2Fx")


def test_streams_are_checked_again_often_enough() -> None:
    assert RECHECK_S <= 2.5


def test_a_user_who_is_removed_from_the_team_loses_the_open_stream(served: ServedOrganisation) -> None:
    served.accounts.members.remove("vision", "vera", CLI, NOW)
    served.accounts.members.add("vision", "vera", "viewer", CLI, NOW)
    served.rights_changed()
    url, headers = f"{served.url}{RUN}/live", served.headers("vera")
    with httpx.stream("GET", url, headers=headers, timeout=PATIENCE_S) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "retry: 1000"
        served.accounts.members.remove("vision", "vera", CLI, NOW)
        text = list(lines)
        assert "event: unauthorised" in text
        assert 'data: {"status": 404}' in text
    served.accounts.members.add("vision", "vera", "viewer", CLI, NOW)
    served.rights_changed()


def test_only_trusted_proxies_say_where_a_request_comes_from(tmp_path: Path) -> None:
    forwarded = {"x-forwarded-for": "203.0.113.9, 198.51.100.7", "x-forwarded-proto": "https"}
    for proxies, ip, scheme in (
        (("127.0.0.1",), "198.51.100.7", "https"),
        (("127.0.0.0/8", "198.51.100.0/24"), "203.0.113.9", "https"),
        ((), "127.0.0.1", "http"),
        (("10.0.0.1",), "127.0.0.1", "http"),
    ):
        router = Router()

        @router.get("/api/v1/where", needs("public"))
        def where(request: Request, requester: TheRequester) -> dict[str, str]:
            return {"ip": requester.ip, "scheme": request.url.scheme}

        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        with serving(folder, routers=[router], trusted_proxies=proxies) as served:
            response = get(f"{served.url}/api/v1/where", headers=forwarded)
            assert response.json() == {"ip": ip, "scheme": scheme}


def test_the_cookie_of_a_session_has_the_flags_of_its_connection() -> None:
    for secure, name in ((True, "__Host-runvitals"), (False, "runvitals_session")):
        response = Response()
        set_session_cookie(response, "secret", secure)
        clear_session_cookie(response, secure)
        for header in response.headers.getlist("set-cookie"):
            cookie, *flags = [part.strip().lower() for part in header.split(";")]
            assert cookie.startswith(name.lower() + "=")
            assert {"httponly", "samesite=lax", "path=/"} <= set(flags)
            assert ("secure" in flags) is secure
            assert not any(flag.startswith("domain") for flag in flags)
