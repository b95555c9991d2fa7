from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

pytest.importorskip("cryptography", reason="cryptography is not installed")

from runvitals.server.database.secret_box import SecretBox, SecretUnreadable, add_key, open_secret_box
from tests.patience import PATIENCE_S


def test_a_secret_opens_for_its_purpose_only(tmp_path: Path) -> None:
    path = str(tmp_path / "secret.key")
    box = open_secret_box(path)
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["secret.key"]
    sealed = box.seal(b"totp secret", "totp:7")
    assert b"totp secret" not in sealed
    assert sealed != box.seal(b"totp secret", "totp:7")
    assert open_secret_box(path).open(sealed, "totp:7") == b"totp secret"
    with pytest.raises(SecretUnreadable, match="was changed"):
        box.open(sealed, "totp:8")
    with pytest.raises(SecretUnreadable, match="was changed"):
        box.open(sealed[:-1] + bytes([sealed[-1] ^ 1]), "totp:7")
    with pytest.raises(SecretUnreadable, match="was changed"):
        box.open(sealed[:12], "totp:7")


def test_a_new_key_encrypts_and_old_ones_decrypt(tmp_path: Path) -> None:
    path = str(tmp_path / "secret.key")
    old = open_secret_box(path).seal(b"secret", "smtp")
    name = add_key(path)
    box = open_secret_box(path)
    assert box.open(old, "smtp") == b"secret"
    assert box.seal(b"secret", "smtp").startswith(name.encode())
    with pytest.raises(SecretUnreadable, match="not in the key file"):
        SecretBox({"other": bytes(32)}).open(old, "smtp")


@pytest.mark.parametrize("text", ["", "nonsense\n", "a1:AAAA\n", ":" + "A" * 44, "a1:é\n"])
def test_a_file_without_keys(tmp_path: Path, text: str) -> None:
    path = tmp_path / "secret.key"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="the key file"):
        open_secret_box(str(path))


def test_processes_that_start_together_share_one_key(tmp_path: Path) -> None:
    path = str(tmp_path / "secret.key")
    start, boxes = threading.Barrier(8), []

    def work() -> None:
        start.wait(PATIENCE_S)
        boxes.append(open_secret_box(path))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    sealed = boxes[0].seal(b"secret", "smtp")
    assert [box.open(sealed, "smtp") for box in boxes] == [b"secret"] * 8
