from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.accounts.routes.people import People, serving_people


@pytest.fixture
def people(tmp_path: Path) -> Iterator[People]:
    """A server with accounts that sends no mail."""
    with serving_people(tmp_path) as people:
        yield people


@pytest.fixture
def mailing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[People]:
    """A server with accounts that sends mail."""
    with serving_people(tmp_path) as people, people.mail:
        monkeypatch.setenv("RUNVITALS_SMTP_URL", people.mail.url)
        monkeypatch.setenv("RUNVITALS_MAIL_FROM", "runs@lab.example")
        monkeypatch.setenv("RUNVITALS_URL", "https://runs.lab.example")
        yield people
