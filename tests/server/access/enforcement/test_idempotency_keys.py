"""Requests that are repeated with the same idempotency key are carried out once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import Body, HTTPException
from sqlalchemy import select

from runvitals.server.access.enforcement.idempotency_keys import MAX_RESPONSE
from runvitals.server.access.permission import needs
from runvitals.server.access.storage.idempotent_requests import KEPT_MS, LEASE_MS
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.database.secret_box import SecretBox
from runvitals.server.database.tables.requests import idempotent_request
from runvitals.server.http.router import Router
from tests.patience import PATIENCE_S
from tests.server.accounts.routes.people import People, serving_people
from tests.server.serving import serving

KEY = {"idempotency-key": "5f0e7c1e-2a55-4f2b-93bd-96cf4e6c1f5d"}


class Numbers:
    """A resource whose every POST counts one up, and does what its body says.

    Attributes:
        started, may_finish: of a request that waits.
    """

    def __init__(self) -> None:
        self.count = 0
        self.started, self.may_finish = threading.Event(), threading.Event()
        self.router = Router(prefix="/api/v1")
        self.router.add_api_route("/numbers", self.add, methods=["POST"], dependencies=[needs("account")])

    def add(self, status: int = Body(200), size: int = Body(0), wait: bool = Body(False)) -> dict[str, Any]:
        self.count += 1
        if wait:
            self.started.set()
            assert self.may_finish.wait(PATIENCE_S)
        if status == 500:
            raise RuntimeError("broken")
        if status >= 400:
            raise HTTPException(status, f"number {self.count}")
        return {"number": self.count, "text": "x" * size}


@pytest.fixture
def numbers() -> Numbers:
    return Numbers()


@pytest.fixture
def people(tmp_path: Path, numbers: Numbers) -> Iterator[People]:
    with serving_people(tmp_path, routers=[numbers.router]) as people:
        for name in ("ada", "bob"):
            people.add(name)
        yield people


def replayed(response: httpx.Response) -> bool:
    return response.headers.get("idempotency-replayed") == "true"


def rows(people: People) -> list[Any]:
    with people.accounts._database.read() as connection:
        return list(connection.execute(select(idempotent_request)))


def test_a_repeated_request_gets_the_first_response(people: People) -> None:
    ada = people.browser("ada")
    first, again = (ada.post("/account/api-keys", json={"name": "ci"}, headers=KEY) for _ in range(2))
    assert (first.status_code, replayed(first)) == (201, False)
    assert (again.status_code, again.content, replayed(again)) == (201, first.content, True)
    for name in ("location", "content-type", "cache-control"):
        assert again.headers[name] == first.headers[name]
    assert again.headers["x-request-id"] != first.headers["x-request-id"]
    assert ada.get("/account/api-keys").json()["total"] == 1
    assert ada.post("/account/api-keys", json={"name": "ci 2"}).status_code == 201  # without the header
    assert people.program(again.json()["key"]).get("/account").status_code == 200


def test_secrets_of_responses_are_not_readable_in_the_database(people: People, tmp_path: Path) -> None:
    secret = people.browser("ada").post("/account/api-keys", json={"name": "ci"}, headers=KEY).json()["key"]
    [row] = rows(people)
    assert row.status == 201
    assert secret.encode() not in row.answer
    files = [path.read_bytes() for path in tmp_path.glob("catalogue.db*")]
    assert files
    assert not [name for file in files for name in (secret, *KEY.values()) if name.encode() in file]


def test_a_key_is_for_one_request(people: People, numbers: Numbers) -> None:
    ada = people.browser("ada")
    assert ada.post("/numbers", json={"size": 1}, headers=KEY).status_code == 200
    others = [
        ada.post("/numbers", json={"size": 2}, headers=KEY),
        ada.post("/numbers?x=1", json={"size": 1}, headers=KEY),
        ada.patch("/numbers", json={"size": 1}, headers=KEY),
        ada.post("/teams", json={"size": 1}, headers=KEY),
    ]
    assert [other.status_code for other in others] == [422] * 4
    assert "another request" in others[0].json()["error"]
    assert numbers.count == 1


def test_keys_of_principals_and_credentials_are_apart(people: People, numbers: Numbers) -> None:
    ada = people.accounts.users.by_name("ada")
    secret, _ = people.accounts.keys.create("a", CLI, people.now_ms, user_id=ada.id, scope="full")
    people.rights_changed()
    clients = [people.browser("ada"), people.browser("ada"), people.browser("bob"), people.program(secret)]
    responses = [client.post("/numbers", json={"size": 1}, headers=KEY) for client in clients]
    assert [response.json()["number"] for response in responses] == [1, 2, 3, 4]
    assert [
        client.post("/numbers", json={"size": 1}, headers=KEY).json()["number"] for client in clients
    ] == [
        1,
        2,
        3,
        4,
    ]
    assert numbers.count == 4


def test_a_request_that_is_being_carried_out_is_not_begun_again(people: People, numbers: Numbers) -> None:
    ada, impatient = people.browser("ada"), people.browser()
    impatient.cookies = ada.cookies
    with ThreadPoolExecutor(1) as thread:
        first = thread.submit(ada.post, "/numbers", json={"wait": True}, headers=KEY)
        assert numbers.started.wait(PATIENCE_S)
        try:
            busy = impatient.post("/numbers", json={"wait": True}, headers=KEY)
        finally:
            numbers.may_finish.set()
        assert (busy.status_code, busy.headers["retry-after"]) == (409, "2")
        assert first.result().json()["number"] == 1
    again = impatient.post("/numbers", json={"wait": True}, headers=KEY)
    assert (again.json()["number"], replayed(again), numbers.count) == (1, True, 1)


def test_another_process_repeats_the_response(people: People, numbers: Numbers, tmp_path: Path) -> None:
    ada = people.browser("ada")
    first = ada.post("/numbers", json={"size": 1}, headers=KEY)
    box = SecretBox({"k": bytes(32)})
    how = {"clock": lambda: people.now_ms, "secret_box": box, "routers": [numbers.router]}
    folder = tmp_path / "second"
    folder.mkdir()
    (folder / "catalogue.db").symlink_to(tmp_path / "catalogue.db")
    with serving(folder, **how) as second, httpx.Client(cookies=ada.cookies, timeout=PATIENCE_S) as client:
        headers = {**KEY, "sec-fetch-site": "same-origin"}
        again = client.post(f"{second.url}/api/v1/numbers", json={"size": 1}, headers=headers)
    assert (again.content, replayed(again), numbers.count) == (first.content, True, 1)


def test_the_request_of_a_process_that_ended_is_carried_out_after_a_minute(
    people: People, numbers: Numbers
) -> None:
    ada = people.browser("ada")
    ada.post("/numbers", json={"size": 1}, headers=KEY)
    lost = idempotent_request.update().values(status=None, answer=None)
    people.accounts._database.write(lambda connection: connection.execute(lost))
    assert ada.post("/numbers", json={"size": 1}, headers=KEY).status_code == 409
    people.pass_s(LEASE_MS / 1000)
    assert ada.post("/numbers", json={"size": 1}, headers=KEY).json()["number"] == 2
    assert ada.post("/numbers", json={"size": 1}, headers=KEY).json()["number"] == 2


def test_responses_are_kept_for_a_day(people: People, numbers: Numbers) -> None:
    program = people.program(
        people.browser("ada").post("/account/api-keys", json={"name": "ci", "scope": "full"}).json()["key"]
    )
    for passed_ms, number in ((0, 1), (KEPT_MS - 1, 1), (1, 2)):
        people.pass_s(passed_ms / 1000)
        assert program.post("/numbers", json={"size": 1}, headers=KEY).json()["number"] == number


@pytest.mark.parametrize("status", [400, 409, 410, 422])
def test_final_refusals_are_repeated(people: People, numbers: Numbers, status: int) -> None:
    ada = people.browser("ada")
    responses = [ada.post("/numbers", json={"status": status}, headers=KEY) for _ in range(2)]
    assert [response.status_code for response in responses] == [status] * 2
    assert (replayed(responses[1]), numbers.count) == (True, 1)


@pytest.mark.parametrize("status", [401, 403, 404, 428, 429, 500, 503])
def test_what_may_be_different_a_moment_later_is_not_kept(
    people: People, numbers: Numbers, status: int
) -> None:
    ada = people.browser("ada")
    responses = [ada.post("/numbers", json={"status": status}, headers=KEY) for _ in range(2)]
    assert [response.status_code for response in responses] == [status] * 2
    assert (replayed(responses[1]), numbers.count) == (False, 2)
    assert rows(people) == []


def test_a_response_that_is_too_long_is_not_repeated_nor_is_the_request(
    people: People, numbers: Numbers
) -> None:
    ada = people.browser("ada")
    assert ada.post("/numbers", json={"size": MAX_RESPONSE}, headers=KEY).status_code == 200
    again = ada.post("/numbers", json={"size": MAX_RESPONSE}, headers=KEY)
    assert again.status_code == 409
    assert "was carried out, with status 200" in again.json()["error"]
    assert numbers.count == 1


@pytest.mark.parametrize("key", ["", "x" * 256, "schlüssel", "a\tb"])
def test_an_invalid_key_is_rejected(people: People, numbers: Numbers, key: str) -> None:
    ada = people.browser("ada")
    response = ada.post("/numbers", json={}, headers={"idempotency-key": key.encode()})  # type: ignore[dict-item]
    assert response.status_code == 422
    assert "1 to 255 printable ASCII characters" in response.json()["error"]
    assert ada.post("/numbers", json={}, headers=[*KEY.items()] * 2).status_code == 422
    assert ada.post("/numbers", json={"size": 1}, headers={"idempotency-key": "k" * 255}).status_code == 200
    assert numbers.count == 1


def test_visitors_and_calls_about_sessions_ignore_the_header(people: People, numbers: Numbers) -> None:
    visitor = people.browser()
    assert visitor.post("/numbers", json={"size": 1}, headers=KEY).status_code == 401
    ada = people.browser("ada")
    for _ in range(2):
        confirmed = ada.post("/auth/sudo", json={"password": "wrong"}, headers=KEY)
        assert not replayed(confirmed)
    assert rows(people) == []


def test_the_document_describes_the_header(people: People) -> None:
    paths = people.browser("rita").get("/openapi.json").json()["paths"]
    having = {
        (method, path)
        for path, operations in paths.items()
        for method, operation in operations.items()
        if any(parameter["name"] == "Idempotency-Key" for parameter in operation.get("parameters", ()))
    }
    assert {("post", "/api/v1/teams"), ("post", "/api/v1/account/api-keys")} <= having
    changing = {
        (method, path) for path, methods in paths.items() for method in {"post", "patch"} & set(methods)
    }
    others = {path for _, path in changing - having}
    assert "/api/v1/ingest" in others
    assert having <= changing
    assert all(path == "/api/v1/ingest" or path.startswith("/api/v1/auth/") for path in others)
    for method, path in having:
        assert {"409", "422"} <= paths[path][method]["responses"].keys(), path
