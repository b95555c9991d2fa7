"""A copy of one's data, and what a deletion of the account takes with it."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np

from runvitals.server.access.enforcement.rate_limits import EXPORTS
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.files.storage.stored_files import StoredFile
from runvitals.server.runs.storage.console import ConsoleLine
from runvitals.server.runs.storage.writer_registration import Sender, WriterRegistration
from runvitals.server.sign_on.storage.logins import ProviderIdentity
from runvitals.store.samples.interface import SampleBatch
from tests.server.accounts.routes.people import PASSWORD, People


def add_runs(people: People) -> None:
    """ada has two runs of her own and one in the team vision, where bob has another; lone is hers alone."""
    ada, bob = people.add("ada"), people.add("bob")
    vision = people.accounts.teams.create("vision", CLI, people.now_ms, administrator=bob.id)
    people.accounts.members.add("vision", "ada", "member", CLI, people.now_ms)
    people.accounts.teams.create("lone", CLI, people.now_ms, administrator=ada.id)
    for uid, entity_id, author in (
        ("own-1", ada.entity_id, ada.id),
        ("own-2", ada.entity_id, ada.id),
        ("team-1", vision.id, ada.id),
        ("team-2", vision.id, bob.id),
    ):
        sender = Sender(entity_id, author_id=author)
        registration = WriterRegistration(uid, f"monitor.{uid}", "digits", sender=sender)
        people.served.metadata_store.writers.join([registration], people.now_ms)
    people.rights_changed()


def test_a_user_gets_a_copy_of_everything_about_them(people: People) -> None:
    add_runs(people)
    browser = people.browser("ada")
    browser.patch("/account/profile", json={"bio": "Counts"})
    key = browser.post("/account/api-keys", json={"name": "laptop"}).json()
    people.accounts.invitations.create("lone", "ada@lab.example", "viewer", CLI, people.now_ms)
    ada = people.accounts.users.by_name("ada")
    identity = ProviderIdentity("lab", "https://id.example", "7", "Ada", None)
    people.accounts.logins.link(ada.id, identity, CLI, people.now_ms)
    people.accounts.pictures.put(ada.entity_id, b"large", b"small", CLI, people.now_ms)
    response = browser.post("/account/export", json={})
    assert (response.status_code, response.headers["content-type"]) == (200, "application/zip")
    assert response.headers["content-disposition"] == 'attachment; filename="runvitals-ada.zip"'
    with zipfile.ZipFile(io.BytesIO(response.content)) as archive:
        names = set(archive.namelist()) - {"picture.webp"}
        contents = {name: json.loads(archive.read(name)) for name in names}
        assert archive.read("picture.webp") == b"large"
    assert set(contents) == {
        f"{name}.json"
        for name in (
            "account",
            "profile",
            "emails",
            "sessions",
            "logins",
            "invitations",
            "api_keys",
            "events",
            "runs",
        )
    }
    assert contents["profile.json"]["bio"] == "Counts"
    assert [email["address"] for email in contents["emails.json"]] == ["ada@lab.example"]
    assert {run["run"] for run in contents["runs.json"]} == {"own-1", "own-2", "team-1"}
    assert [login["provider"] for login in contents["logins.json"]] == ["lab"]
    assert [(invitation["team"], invitation["role"]) for invitation in contents["invitations.json"]] == [
        ("lone", "viewer")
    ]
    assert {event["action"] for event in contents["events.json"]} >= {"user.login", "key.create"}
    text = str(contents)
    assert key["name"] in text
    assert key["key"] not in text
    assert "team-2" not in text
    assert people.actions()[-1] == "user.export"


def test_storage_of_the_own_space(people: People) -> None:
    add_runs(people)
    served = people.served
    (writers,) = served.metadata_store.writers.of_runs([1]).values()
    times = people.now_ms + np.arange(100, dtype=np.int64)
    served.store.append([SampleBatch(writers[0].lane_id, 1, 0, (1,), times, np.ones((100, 1)))])
    line = ConsoleLine(1, writers[0].id, 0, people.now_ms, 1, "hello")
    served.metadata_store.console.add([line])
    usage = people.browser("ada").get("/account/usage").json()["storage"]
    stored = {kind: size for kind, size in usage["by_kind"].items() if size}
    assert stored == {"samples": 1600, "console": 5}
    assert (usage["bytes"], usage["trash_bytes"], usage["limit_bytes"]) == (1605, 0, 100 * 10**9)
    people.set(storage_limit_gb=None)
    assert people.browser("ada").get("/account/usage").json()["storage"]["limit_bytes"] is None
    (project,) = usage["by_project"]
    assert (project["project"], project["runs"], project["bytes"]) == ("digits", 2, 1605)
    served.store.flush()
    sealed = people.browser("ada").get("/account/usage").json()["storage"]["by_kind"]["samples"]
    assert 0 < sealed < 1600
    served.metadata_store.runs.delete([1], people.now_ms)
    assert people.browser("ada").get("/account/usage").json()["storage"]["trash_bytes"] == sealed + 5
    assert people.browser("bob").get("/account/usage").json()["storage"]["bytes"] == 0  # the team's


def test_files_count_once_for_a_team(people: People) -> None:
    add_runs(people)
    store = people.served.metadata_store
    shared, own = StoredFile("a" * 64, 1000, "image/png"), StoredFile("b" * 64, 30, "image/png")
    runs = {uid: store.runs.places(uid) for uid in ("team-1", "team-2", "own-1")}
    numbers = {uid: run.run_id for uid, [run] in runs.items()}
    store.stored_files.add(numbers["team-1"], shared, people.now_ms)
    store.stored_files.add(numbers["team-2"], shared, people.now_ms)
    store.stored_files.add(numbers["team-2"], own, people.now_ms)
    store.stored_files.add(numbers["own-1"], shared, people.now_ms)
    usage = people.browser("ada").get("/account/usage").json()["storage"]
    assert (usage["bytes"], usage["by_kind"]["media"]) == (1000, 1000)
    store.runs.delete([numbers["team-2"]], people.now_ms)
    assert people.browser("ada").get("/teams/vision/usage").status_code == 403
    usage = people.browser("bob").get("/teams/vision/usage").json()["storage"]
    assert (usage["by_kind"]["media"], usage["trash_bytes"]) == (1030, 30)
    assert sum(row["media"] for row in usage["by_project"]) == 1030


def test_a_copy_needs_a_confirmed_password_and_is_limited(people: People) -> None:
    people.add("ada")
    browser = people.browser("ada")
    people.pass_s(3600)
    assert browser.post("/account/export", json={}).status_code == 428
    browser.post("/auth/sudo", json={"password": PASSWORD})
    statuses = [browser.post("/account/export", json={}).status_code for _ in range(EXPORTS.count + 1)]
    assert statuses == [200] * EXPORTS.count + [429]


def test_it_is_said_before_what_a_deletion_takes_along(people: People) -> None:
    add_runs(people)
    browser = people.browser("ada")
    browser.post("/account/api-keys", json={"name": "laptop"})
    assert browser.get("/account/deletion").json() == {
        "delete_after_ms": None,
        "goes": {"projects": 1, "runs": 2, "api_keys": 1, "teams": ["lone"]},
        "stays": {"runs": 1},
    }
    assert browser.request("DELETE", "/account", json={"confirm": "ada"}).status_code == 204
    assert people.accounts.teams.by_name("lone").deleted_ms == people.now_ms
    assert people.accounts.teams.by_name("vision").deleted_ms is None


def test_the_profile_page_shows_readable_projects_and_a_rendered_intro(people: People) -> None:
    add_runs(people)
    own, bob = people.browser("ada"), people.browser("bob")
    own.patch("/account/profile", json={"intro": "# Hi @bob and @nobody\n<script>alert(1)</script>"})
    assert [project["name"] for project in own.get("/users/ada").json()["projects"]] == ["digits"]
    seen = bob.get("/users/ada").json()
    assert seen["projects"] == []
    assert '<a href="/bob"' in seen["intro_html"]
    assert 'href="/nobody"' not in seen["intro_html"]
    assert "<script" not in seen["intro_html"]
