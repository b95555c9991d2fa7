"""Buckets of teams, over HTTP: S3 with its signatures, and what happens when it fails."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from runvitals.model.durations import DAY_MS
from runvitals.server.audit.storage.audit import CLI, AuditFilter
from runvitals.server.backup.left_out import files_in_buckets
from runvitals.server.buckets.team_buckets import AT_ONCE, BucketAway
from runvitals.server.database.database import Database
from runvitals.server.database.secret_box import temporary_secret_box
from runvitals.server.files.received_files import ReceivedFiles
from runvitals.server.files.storage.stored_files import StoredFile
from runvitals.server.http.serve import listen
from runvitals.server.pairing.check import check_team_buckets
from runvitals.server.runs.storage.writer_registration import Sender, WriterRegistration
from tests.buckets.s3_service import ACCESS_KEY, SECRET_KEY, ObjectService, allowing
from tests.patience import PATIENCE_S
from tests.server.accounts_server import T0, AccountsServer, accounts_server
from tests.server.conftest import beginning
from tests.server.database.artifacts.making import logged, md5

BUCKETS = "organisation/buckets"
CONTENT = b"saved\n" * 100
SHA256 = hashlib.sha256(CONTENT).hexdigest()
FOLDER_STEPS = ["open", "write", "list", "read", "delete"]
ALL_STEPS = ["open", "write", "list", "read", "presign", "cors", "delete"]


@pytest.fixture
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[AccountsServer]:
    """As the usual one, with a folder below which buckets may be."""
    folders = tmp_path / "disk"
    folders.mkdir()
    with accounts_server(
        tmp_path, fill=beginning(request), team_folders=[str(folders)], monotonic=Seconds()
    ) as running:
        running.app.services.access.rights_changed()
        yield running


@pytest.fixture
def s3(vision: AccountsServer) -> Iterator[ObjectService]:
    """A service that the server may reach."""
    service = ObjectService()
    vision.accounts.settings.put(allowing(service.url), CLI, T0)
    yield service
    service.close()


class Seconds:
    """Seconds that pass when the test says so."""

    now = 0.0

    def __call__(self) -> float:
        return Seconds.now


def described(s3: ObjectService, **changes: Any) -> dict[str, Any]:
    keys = {"access_key_id": ACCESS_KEY, "secret_access_key": SECRET_KEY}
    bucket = {"name": "cold store", "provider": "s3", "bucket": s3.bucket, "prefix": "training"}
    return {**bucket, "endpoint": s3.url, "region": "eu-central-1", "secret": keys, **changes}


def states(bucket: dict[str, Any]) -> dict[str, str]:
    return {step["step"]: step["state"] for step in bucket["steps"]}


def new_team(server: AccountsServer, s3: ObjectService, name: str = "labs") -> int:
    """A team with a bucket; returns its id."""
    server.ask("olga", "POST", BUCKETS, 201, json=described(s3))
    server.ask("olga", "POST", "teams", 201, json={"name": name, "bucket": "cold store"})
    return server.accounts.teams.by_name(name).id


def new_run(server: AccountsServer, team_id: int, uid: str = "abc") -> int:
    """A run in a project of a team; returns its id."""
    server.accounts.owned_projects.create(team_id, f"p-{uid}", CLI, T0)
    sender = Sender(entity_id=team_id)
    registration = WriterRegistration(uid, "media.node1.7.1", f"p-{uid}", sender=sender)
    (writer,) = server.metadata_store.writers.join([registration], T0)
    return writer.run_id


def files_of(server: AccountsServer) -> ReceivedFiles:
    files = server.app.services.files
    assert files is not None
    return files


def upload(server: AccountsServer, run: str, status: int, content: bytes = CONTENT) -> Any:
    sha256 = hashlib.sha256(content).hexdigest()
    path = f"runs/{run}/files/{sha256}?offset=0&size={len(content)}"
    return server.ask("olga", "PUT", path, status, content=content)


def test_a_bucket_is_checked_step_by_step(vision: AccountsServer, s3: ObjectService) -> None:
    added = vision.ask("olga", "POST", BUCKETS, 201, json=described(s3))
    assert states(added) == dict.fromkeys(ALL_STEPS, "ok")
    assert (added["prefix"], added["credentials"], added["teams"]) == ("training/", "secret", [])
    assert SECRET_KEY not in str(added)
    assert s3.keys() == []
    path = f"{BUCKETS}/{added['id']}"
    for fault, failed, missing in (
        ("forbidden", {"write": "AccessDenied"}, []),
        ("full", {"write": "XMinioStorageFull"}, []),
        ("no cors", {}, ["cors"]),
    ):
        s3.fault = fault
        steps = vision.ask("olga", "POST", f"{path}/check")["steps"]
        errors = {step["step"]: step["error"] for step in steps if step["state"] == "failed"}
        assert errors.keys() == failed.keys()
        assert all(text in errors[name] for name, text in failed.items())
        assert [step["step"] for step in steps if step["state"] == "missing"] == missing
    s3.fault = None
    listed = vision.ask("olga", "GET", BUCKETS)
    assert [(row["name"], row["bucket"]) for row in listed["buckets"]] == [("cold store", s3.bucket)]
    vision.ask("olga", "POST", BUCKETS, 409, json=described(s3))
    vision.ask("olga", "DELETE", path, 204)
    assert vision.ask("olga", "GET", BUCKETS)["total"] == 0
    actions = [action for action in vision.actions() if action.startswith("bucket.")]
    assert actions == ["bucket.create", *["bucket.check"] * 4, "bucket.delete"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"prefix": "a/../b"}, "prefix"),
        ({"bucket": "Not A Bucket"}, "bucket"),
        ({"endpoint": "ftp://host"}, "endpoint"),
        ({"secret": {"access_key_id": "x"}}, "secret"),
        ({"secret": {"account_key": "x"}}, "secret"),
        ({"provider": "gcs", "secret": {"service_account": "[]"}}, "secret"),
        ({"provider": "gcs", "secret": None}, "endpoint"),
        ({"provider": "gcs", "secret": {"service_account": '{"gcs_base_url": "http://x"}'}}, "secret"),
        ({"provider": "azure", "secret": {"account_key": "x"}}, "account"),
        ({"provider": "azure", "account": "10.0.0.1/", "secret": {"account_key": "x"}}, "account"),
        ({"endpoint": "https://10.0.0.1"}, "endpoint"),
        ({"endpoint": "http://169.254.169.254"}, "endpoint"),
        ({"endpoint": "https://localhost:9"}, "endpoint"),
        ({"provider": "gcs", "kms_key": "k", "secret": {"service_account": "{}"}}, "kms_key"),
        ({"provider": "folder", "bucket": "/etc", "endpoint": "", "secret": None}, "bucket"),
    ],
)
def test_what_a_bucket_cannot_be(
    vision: AccountsServer, s3: ObjectService, change: dict[str, Any], field: str
) -> None:
    refused = vision.ask("olga", "POST", BUCKETS, 422, json=described(s3, **change))
    assert list(refused["fields"]) == [field]


def test_an_endpoint_leads_only_where_the_server_may_go(vision: AccountsServer, s3: ObjectService) -> None:
    team_id, team_buckets = new_team(vision, s3), vision.app.services.team_buckets
    new_run(vision, team_id)
    upload(vision, "abc", 200)
    store = team_buckets.of(team_id)
    with listen(0) as inside:
        inside.setblocking(False)
        s3.moved_to = f"http://127.0.0.1:{inside.getsockname()[1]}/"
        with pytest.raises(OSError, match=r"40[37]"), store.open(SHA256) as file:
            file.read()
        with pytest.raises(BlockingIOError):
            inside.accept()
    vision.accounts.settings.put({"webhook_http": []}, CLI, T0)
    Seconds.now += 31
    with pytest.raises(BucketAway, match="the URL is not encrypted"):
        team_buckets.of(team_id)


def test_files_of_a_team_are_in_its_bucket(vision: AccountsServer, s3: ObjectService) -> None:
    team_id = new_team(vision, s3)
    run_id = new_run(vision, team_id)
    other = new_run(vision, vision.accounts.teams.by_name("vision").id, "other")
    assert upload(vision, "abc", 200)["complete"]
    key = f"training/{team_id}/{SHA256[:2]}/{SHA256}"
    assert s3.keys() == [key]
    files = files_of(vision)
    opened = files.open(run_id, SHA256)
    assert opened is not None
    with opened.file:
        assert opened.file.read() == CONTENT
    # The same content of a team without one is in the store of the server, and neither goes with the other.
    files.append(other, SHA256, len(CONTENT), 0, [CONTENT])
    used = vision.ask("olga", "GET", "teams/labs/storage")
    assert (used["objects"], used["bytes"]) == (1, len(CONTENT))
    assert used["bucket"]["prefix"] == f"training/{team_id}/"
    assert SECRET_KEY not in str(used)
    assert ACCESS_KEY not in str(used)
    assert vision.ask("olga", "GET", "teams/vision/storage")["bucket"] is None
    vision.ask("eve", "GET", "teams/vision/storage", 403)
    vision.metadata_store.runs.delete([run_id], T0)
    vision.metadata_store.runs.purge([run_id], T0)
    assert files.collect() == 1
    assert s3.keys() == []
    opened = files.open(other, SHA256)
    assert opened is not None
    opened.file.close()


def test_what_is_exported_while_a_bucket_is_away(vision: AccountsServer, s3: ObjectService) -> None:
    """Exports are made when they are asked for: none is kept, and none needs the bucket.

    A file that is there waits: 503 with Retry-After, and nothing is lost.
    """
    new_run(vision, new_team(vision, s3))
    assert upload(vision, "abc", 200)["complete"]
    keys = s3.keys()
    exports = [("POST", "account/export", 200)]
    exports += [("GET", f"runs/abc/history?format={name}", 200) for name in ("csv", "arrow", "parquet")]
    for fault, status in ((None, 200), ("forbidden", 503), (None, 200)):
        s3.fault = fault
        with vision.client("olga") as olga:
            for method, path, expected in (*exports, ("GET", f"runs/abc/files/{SHA256}", status)):
                response = olga.request(method, path)
                assert response.status_code == expected, (fault, path, response.text)
            if status == 503:
                assert 1 <= int(response.headers["retry-after"]) <= 60
            else:
                assert response.content == CONTENT
        s3.fault = None
        assert s3.keys() == keys
        Seconds.now += 60


def test_a_bucket_is_given_once(vision: AccountsServer, s3: ObjectService) -> None:
    vision.ask("olga", "PUT", "organisation/settings", json={"team_creation": "members"})
    vision.ask("olga", "POST", BUCKETS, 201, json=described(s3))
    vision.ask("ada", "POST", "teams", 403, json={"name": "mine", "bucket": "cold store"})
    s3.fault = "forbidden"
    refused = vision.ask("olga", "POST", "teams", 422, json={"name": "labs", "bucket": "cold store"})
    assert "failed at write" in refused["fields"]["bucket"]
    assert "AccessDenied" in refused["fields"]["bucket"]
    s3.fault = None
    vision.ask("olga", "POST", "teams", 422, json={"name": "labs", "bucket": "another"})
    vision.ask("olga", "POST", "teams", 201, json={"name": "labs", "bucket": "cold store"})
    (row,) = vision.ask("olga", "GET", BUCKETS)["buckets"]
    assert row["teams"] == ["labs"]
    refused = vision.ask("olga", "DELETE", f"{BUCKETS}/{row['id']}", 409)
    assert "labs" in refused["error"]
    vision.accounts.members.add("vision", "olga", "admin", CLI, T0)
    project = vision.accounts.owned_projects.create(
        vision.accounts.teams.by_name("labs").id, "digits", CLI, T0
    )
    moved = vision.ask(
        "olga", "POST", f"entities/labs/projects/{project.name}/transfer", 409, json={"entity": "vision"}
    )
    assert "different buckets" in moved["error"]


@pytest.mark.parametrize("fault", ["forbidden", "full", "short", "gone"])
def test_what_a_bucket_does_not_take_is_sent_again(
    vision: AccountsServer, s3: ObjectService, fault: str
) -> None:
    team_id = new_team(vision, s3)
    run_id = new_run(vision, team_id)
    if fault == "gone":
        s3.close()
    else:
        s3.fault = fault
    with vision.client("olga") as olga:
        response = olga.put(f"runs/abc/files/{SHA256}?offset=0&size={len(CONTENT)}", content=CONTENT)
    assert response.status_code == 503
    assert 1 <= int(response.headers["retry-after"]) <= 30
    assert vision.metadata_store.stored_files.of_run(run_id, SHA256) is None
    # Everything else works; it is not asked again for a while, and administrators are notified once a day.
    assert vision.ask("olga", "GET", "teams/labs/storage")["bucket"]["away_ms"] is not None
    asked = len(s3.requests)
    assert upload(vision, "abc", 503, b"another")["error"]
    assert len(s3.requests) == asked
    files, table = files_of(vision), vision.accounts.buckets
    assert table.report_away(T0) == 1
    assert table.report_away(T0 + 3_600_000) == 0
    assert table.report_away(T0 + DAY_MS) == 1
    if fault == "gone":
        return
    s3.fault = None
    Seconds.now += 60
    files.collect()
    assert table.of_team(team_id).away_ms is None  # type: ignore[union-attr]
    # What had arrived is still there: an empty piece completes it.
    complete = f"runs/abc/files/{SHA256}?offset={len(CONTENT)}&size={len(CONTENT)}"
    assert vision.ask("olga", "PUT", complete, content=b"")["complete"]
    assert f"training/{team_id}/{SHA256[:2]}/{SHA256}" in set(s3.keys())


def test_a_slow_bucket_keeps_nobody_else_waiting(vision: AccountsServer, s3: ObjectService) -> None:
    new_run(vision, new_team(vision, s3))
    s3.fault = "slow"
    contents = [b"%d" % number for number in range(AT_ONCE)]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        uploads = [threads.submit(upload, vision, "abc", 200, content) for content in contents]
        while s3.waiting < AT_ONCE:
            time.sleep(0.01)
        assert "busy" in upload(vision, "abc", 503, b"one more")["error"]
        assert vision.ask("olga", "GET", "teams/labs/storage")["objects"] == 0
        s3.fault = None
        s3.slow.set()
        assert all(done.result()["complete"] for done in uploads)
    assert upload(vision, "abc", 200)["complete"]


def test_credentials_are_rotated(vision: AccountsServer, s3: ObjectService) -> None:
    new_run(vision, new_team(vision, s3))
    upload(vision, "abc", 200, b"with the first")
    path = f"{BUCKETS}/{vision.ask('olga', 'GET', BUCKETS)['buckets'][0]['id']}"
    new = {"access_key_id": "AKIANEW", "secret_access_key": "new-secret"}
    refused = vision.ask("olga", "PATCH", path, 422, json={"secret": new})
    assert "failed at write: InvalidAccessKeyId" in refused["fields"]["secret"]
    vision.ask("olga", "PATCH", path, 422, json={"secret": {"access_key_id": "AKIANEW"}})
    vision.ask("ada", "PATCH", path, 403, json={"secret": new})
    upload(vision, "abc", 200, b"still with the first")
    s3.accepted["AKIANEW"] = "new-secret"
    changed = vision.ask("olga", "PATCH", path, json={"secret": new})
    assert states(changed) == dict.fromkeys(ALL_STEPS, "ok")
    assert "new-secret" not in str(changed)
    del s3.accepted[ACCESS_KEY]
    upload(vision, "abc", 200, b"with the second")
    last = vision.accounts.audit.page(AuditFilter(action="bucket.credentials"), 10)
    assert [(event.target, event.after) for event in last] == [("cold store", {"credentials": "secret"})]


def test_another_server_uses_new_credentials_after_a_while(vision: AccountsServer, s3: ObjectService) -> None:
    team_id = new_team(vision, s3)
    new_run(vision, team_id)
    upload(vision, "abc", 200, b"with the first")
    table = vision.accounts.buckets
    row = table.of_team(team_id)
    assert row is not None
    new = {"access_key_id": "AKIANEW", "secret_access_key": "new-secret"}
    s3.accepted = {"AKIANEW": "new-secret"}
    sealed = vision.app.services.team_buckets.seal(row.name, new)
    table.change(row.id, CLI, T0, sealed=sealed, direct=True)  # as the other server did
    Seconds.now += 31
    upload(vision, "abc", 200, b"with the second")


def test_a_folder(vision: AccountsServer, tmp_path: Path) -> None:
    folder = tmp_path / "disk" / "nfs"
    folder.mkdir()
    new = {"name": "nfs", "provider": "folder", "bucket": str(folder)}
    assert states(vision.ask("olga", "POST", BUCKETS, 201, json=new)) == dict.fromkeys(FOLDER_STEPS, "ok")
    vision.ask("olga", "POST", "teams", 201, json={"name": "labs", "bucket": "nfs"})
    team_id = vision.accounts.teams.by_name("labs").id
    new_run(vision, team_id)
    upload(vision, "abc", 200)
    assert (folder / str(team_id) / SHA256[:2] / SHA256).read_bytes() == CONTENT


def test_only_administrators_of_the_organisation_see_buckets(vision: AccountsServer) -> None:
    for name in ("ada", "bob", "mallory"):
        vision.ask(name, "GET", BUCKETS, 403)
        vision.ask(name, "POST", BUCKETS, 403, json={"name": "x", "provider": "s3", "bucket": "abc"})


def test_a_file_is_read_at_a_signed_address(vision: AccountsServer, s3: ObjectService) -> None:
    team_id = new_team(vision, s3)
    project_id = vision.accounts.owned_projects.create(team_id, "digits", CLI, T0).id
    files, contents = files_of(vision), vision.metadata_store.artifacts.contents
    path = files.begin(len(CONTENT))
    Path(path).write_bytes(CONTENT)
    files.keep(
        path,
        SHA256,
        len(CONTENT),
        lambda file: contents.add(project_id, md5(CONTENT), file, T0),
        files.place_of_project(project_id),
    )
    files.end(path)
    logged(vision.metadata_store, project_id, {"weights.bin": CONTENT}, "weights")
    address = "entities/labs/projects/digits/artifacts/weights/latest/content?path=weights.bin"
    with vision.client("olga") as olga, vision.client("mallory") as mallory:
        assert olga.get(address).content == CONTENT
        response = olga.get(f"{address}&redirect=true")
        assert (response.status_code, response.headers["cache-control"]) == (307, "no-store")
        assert mallory.get(f"{address}&redirect=true").status_code == 404
    assert response.headers["location"].startswith(s3.url)
    direct = httpx.get(response.headers["location"], timeout=PATIENCE_S)
    assert direct.content == CONTENT
    assert direct.headers["content-disposition"] == "attachment"
    bucket = vision.ask("olga", "GET", BUCKETS)["buckets"][0]
    changed = vision.ask("olga", "PATCH", f"{BUCKETS}/{bucket['id']}", json={"direct": False})
    assert (bucket["direct"], changed["direct"], changed["credentials"]) == (True, False, "secret")
    with vision.client("olga") as olga:
        assert olga.get(f"{address}&redirect=true").content == CONTENT  # through the server
    assert (
        httpx.get(
            response.headers["location"].replace("Expires=300", "Expires=9999"), timeout=PATIENCE_S
        ).status_code
        == 403
    )


def test_a_check_of_the_store_lists_buckets(
    vision: AccountsServer, s3: ObjectService, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    team_id = new_team(vision, s3)
    run_id = new_run(vision, team_id)
    upload(vision, "abc", 200)
    box = vision.app.services.team_buckets._box
    address = f"sqlite:///{tmp_path / 'catalogue.db'}"
    assert list(check_team_buckets(address, box)) == []
    lost = StoredFile("0" * 64, 7, "text/plain", team_id)
    vision.metadata_store.stored_files.add(run_id, lost, T0)
    s3.put(f"training/{team_id}/{SHA256[:2]}/{SHA256}", b"short")
    problems = [problem.text for problem in check_team_buckets(address, box)]
    assert problems == [
        f"the content {'0' * 64} of 7 bytes is missing",
        f"the content {SHA256} of 600 bytes is damaged: what is there has 5 bytes",
    ]
    (problem,) = check_team_buckets(address, temporary_secret_box())
    assert "cannot be read" in problem.text
    with closing(Database(address)) as database:
        elsewhere, size = files_in_buckets(database)
    assert (elsewhere, size) == ([f"s3://{s3.bucket}/training"], len(CONTENT) + 7)
