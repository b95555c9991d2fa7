"""Copies a metadata store while servers may use it: SQLite itself, PostgreSQL with its own programs."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from pathlib import Path

from sqlalchemy.engine import make_url

from runvitals.store import private_files
from runvitals.store.errors import MetadataStoreError
from runvitals.store.samples.sqlite.database import copy_immutable, is_on_read_only_disk


def copy_sqlite(path: str, into: str) -> None:
    """Copy a consistent snapshot of a metadata store's file.

    Of a server's folder, copy the samples first, so that this copy has every id they use.

    Raises:
        MetadataStoreError: it could not be read, or the copy could not be written.
    """
    try:
        private_files.create(into, exclusive=True)
        if is_on_read_only_disk(path):
            copy_immutable(path, into)
            return
        source = sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=rw", uri=True)
        try:
            target = sqlite3.connect(into)
            try:
                source.backup(target)
            finally:
                target.close()
        finally:
            source.close()
    except (sqlite3.Error, OSError) as error:
        raise MetadataStoreError(f"could not copy {path} to {into}: {error}") from error


def dump_postgresql(address: str, into: str) -> None:
    """Write a consistent snapshot of the database into a new file. Servers may be using it.

    Raises:
        MetadataStoreError: `pg_dump` is not installed, is older than the server, or failed.
    """
    try:
        private_files.create(into, exclusive=True)
    except OSError as error:
        raise MetadataStoreError(f"could not create {into}: {error.strerror}") from error
    _run("pg_dump", address, "--format=custom", f"--file={into}")


def restore_postgresql(path: str, address: str) -> None:
    """Restore a dump into an empty database, completely or not at all; or raise MetadataStoreError."""
    # Its user may be another one than that of the dump, and need not own the extension pg_trgm.
    options = ("--no-owner", "--no-privileges", "--no-comments", "--exit-on-error", "--single-transaction")
    _run("pg_restore", address, *options, path)


def _run(program: str, address: str, *arguments: str) -> None:
    url = make_url(address)
    # Other users of the machine see the arguments of processes.
    environment = os.environ if url.password is None else {**os.environ, "PGPASSWORD": str(url.password)}
    shown = url.set(drivername="postgresql", password=None).render_as_string()
    try:
        subprocess.run(
            [program, f"--dbname={shown}", "--no-password", *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
        )
    except FileNotFoundError:
        raise MetadataStoreError(
            f"{program} is not installed: it is part of PostgreSQL's client (Debian: postgresql-client), and "
            "must not be older than the server"
        ) from None
    except subprocess.CalledProcessError as error:
        reason = "; ".join(error.stderr.decode("utf-8", "replace").split("\n")[:3]).strip("; ")
        raise MetadataStoreError(f"{program} of {shown} failed: {reason}") from None
