from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runvitals.server.database.secret_box import SecretBox
from runvitals.server.mail.mailer import Mailer
from runvitals.server.metadata_store import MetadataStore
from tests.certificates import self_signed
from tests.server.database.conftest import address, empty, kind, metadata_store, postgresql
from tests.server.mail.receiver import Receiver

__all__ = ["address", "empty", "kind", "metadata_store", "postgresql"]

T0 = 1_800_000_000_000
Environment = dict[str, str]


class SetClock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now_ms = T0

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def box() -> SecretBox:
    return SecretBox({"k": bytes(32)})


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


@pytest.fixture
def new_mailer(metadata_store: MetadataStore, box: SecretBox, clock: SetClock) -> Callable[[str], Mailer]:
    """Makes mailers by the URL of a mail server."""

    def make(smtp_url: str) -> Mailer:
        environment = {
            "RUNVITALS_SMTP_URL": smtp_url,
            "RUNVITALS_MAIL_FROM": "runs@lab.example",
            "RUNVITALS_URL": "https://runs.lab.example/",
        }
        return Mailer(metadata_store, box, clock, environment)

    return make


@pytest.fixture
def mailer(new_mailer: Callable[[str], Mailer], receiver: Receiver) -> Mailer:
    return new_mailer(receiver.url)


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's certificate for 127.0.0.1, and the file that makes clients trust it."""
    return self_signed(tmp_path)
