"""Dumps a metadata store in PostgreSQL and restores it, with PostgreSQL's own programs."""

from __future__ import annotations

import os
import subprocess

from sqlalchemy.engine import make_url

from runvitals.store import private_files
from runvitals.store.errors import MetadataStoreError


def dump(address: str, into: str) -> None:
    """Write a consistent snapshot of the database into a new file. Servers may be using it.

    Raises:
        MetadataStoreError: `pg_dump` is not installed, is older than the server, or failed.
    """
    try:
        private_files.create(into, exclusive=True)
    except OSError as error:
        raise MetadataStoreError(f"could not create {into}: {error.strerror}") from error
    _run("pg_dump", address, "--format=custom", f"--file={into}")


def load(path: str, address: str) -> None:
    """Restore a dump into an empty database: completely or, if it fails, not at all.

    Raises:
        MetadataStoreError: `pg_restore` is not installed, or failed.
    """
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
