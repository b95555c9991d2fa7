"""Errors that end a command, as users read them."""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
from contextlib import closing

import pytest

from runvitals.cli import error_text, main
from runvitals.store.samples.interface import StoreUnavailable
from runvitals.store.samples.sqlite.database import store_errors

TO_DO = "; free disk space, or choose a folder on another disk"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (KeyError("no run 'abc'"), "no run 'abc'"),
        (ValueError("--keys: expected a glob"), "--keys: expected a glob"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "/a"), "/a: No such file or directory"),
        (OSError(errno.ENOSPC, "No space left on device", "/a"), f"/a: No space left on device{TO_DO}"),
        (OSError("could not listen on 0.0.0.0:80"), "could not listen on 0.0.0.0:80"),
    ],
)
def test_text(error: Exception, text: str) -> None:
    assert error_text(error) == text


@pytest.mark.skipif(sys.version_info < (3, 11), reason="sqlite3 reports no error codes")
def test_a_full_disk_is_recognized_in_a_database() -> None:
    def fill() -> None:
        with closing(sqlite3.connect(":memory:")) as connection, store_errors("/data/log.db"):
            connection.execute("CREATE TABLE t (x)")
            connection.execute("PRAGMA max_page_count = 2")
            connection.execute("INSERT INTO t VALUES (zeroblob(100000))")

    with pytest.raises(StoreUnavailable) as raised:
        fill()
    assert error_text(raised.value) == f"/data/log.db: database or disk is full{TO_DO}"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux")
def test_the_error_of_the_system_is_recognized() -> None:
    with pytest.raises(OSError, match="No space left") as raised, open("/dev/full", "w") as file:  # noqa: PT012
        file.write("x")
        file.flush()
    assert error_text(raised.value) == f"No space left on device{TO_DO}"


@pytest.mark.parametrize("words", [["metrics"], ["--help"], ["metrics", "--json"]])
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux")
def test_output_to_a_full_disk(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open("/dev/full", "w") as full, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", full)
        try:
            failed: object = main(words)
        except SystemExit as exit:
            failed = exit.code
    assert failed == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert f"No space left on device{TO_DO}" in error
