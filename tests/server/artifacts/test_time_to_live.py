"""The time to live of an artifact: by the API, the command, and what a client of wandb is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.cli import main
from runvitals.model.durations import DAY_MS
from runvitals.server.audit.storage.audit import AuditFilter
from tests.server.access.organisation import TEAM, ServedOrganisation, served_organisation
from tests.server.database.artifacts.making import T0, logged

ARTIFACT = f"/api/v1/entities/{TEAM}/projects/team/artifacts/mnist"
DAY_S = DAY_MS // 1000


@pytest.fixture
def vision(tmp_path: Path) -> Iterator[ServedOrganisation]:
    """Two versions of `mnist`, of which one is linked."""
    with served_organisation(tmp_path) as served:
        store = served.metadata_store
        project_id = store.projects.id("team")
        for content in (b"1", b"2"):
            version = logged(store, project_id, {"a": content}, "mnist")
        store.artifacts.links.link(version.id, project_id, "best", [], T0)
        served.rights_changed()
        yield served


def test_it_is_set_and_shown(vision: ServedOrganisation) -> None:
    changed = vision.ask("bob", "PATCH", ARTIFACT, json={"ttl_s": 30 * DAY_S}).json()
    assert changed == {"ttl_s": 30 * DAY_S, "expiring_versions": 1}
    page = vision.ask("bob", "GET", ARTIFACT).json()
    assert page["ttl_s"] == 30 * DAY_S
    assert [row["expires_ms"] for row in page["artifacts"]] == [None, T0 + 30 * DAY_MS]
    assert vision.ask("bob", "GET", f"{ARTIFACT}/v0").json()["expires_ms"] == T0 + 30 * DAY_MS
    (event,) = vision.accounts.audit.page(AuditFilter(action="artifact.time_to_live"), 10)
    assert (event.before, event.after) == (
        {"artifact": "mnist", "ttl_s": None},
        {"artifact": "mnist", "ttl_s": 30 * DAY_S},
    )
    assert vision.ask("bob", "PATCH", ARTIFACT, json={"ttl_s": None}).json()["ttl_s"] is None


@pytest.mark.parametrize(
    ("who", "name", "body", "status"),
    [
        ("vera", "mnist", {"ttl_s": DAY_S}, 403),
        ("otto", "mnist", {"ttl_s": DAY_S}, 404),
        ("bob", "none", {"ttl_s": DAY_S}, 404),
        ("bob", "best", {"ttl_s": DAY_S}, 409),
        ("bob", "mnist", {"ttl_s": 59}, 422),
        ("bob", "mnist", {"ttl_s": 1 << 62}, 422),
        ("bob", "mnist", {}, 422),
        ("bob", "mnist", {"ttl_s": DAY_S, "name": "x"}, 422),
    ],
)
def test_who_may_set_it_and_what_it_can_be(
    vision: ServedOrganisation, who: str, name: str, body: dict[str, object], status: int
) -> None:
    path = ARTIFACT.replace("mnist", name)
    assert vision.ask(who, "PATCH", path, json=body).status_code == status


def test_the_command_says_and_sets_it(
    vision: ServedOrganisation, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RUNVITALS_SERVER", vision.url)
    monkeypatch.setenv("RUNVITALS_TOKEN", vision.keys["bob"])
    name = f"{TEAM}/team/mnist"
    for arguments, expected in (
        ([], "versions are kept"),
        (["30"], "versions are deleted 30 days after they were logged (1 of those that are there)"),
        ([], "versions are deleted 30 days after they were logged"),
        (["never"], "versions are kept"),
    ):
        assert main(["artifact", "ttl", name, *arguments]) == 0
        assert capsys.readouterr().out == f"{name}: {expected}\n"
    with pytest.raises(SystemExit):
        main(["artifact", "ttl", name, "0"])
    assert "expected a number of days, or never" in capsys.readouterr().err
