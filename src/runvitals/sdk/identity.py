"""Determines a process's run id and default run name, the same in all processes of a job."""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from typing import Any

from runvitals.journal import paths
from runvitals.monitoring.environment import launcher
from runvitals.monitoring.settings.settings import SETTINGS
from runvitals.sdk import spawned_worker
from runvitals.sdk.run_names import free_name, names_of

_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
_LENGTH = 8
_MAX_NAME_LENGTH = 128

# How many runs of a job this process has started. All ranks count alike, so that their second runs share an
# id too.
_begun: dict[str, int] = {}


class RunIdentity:
    """The run a process belongs to, and its ranks.

    No `NamedTuple`: defining one would take 1 ms at every script's start.

    Args:
        run_id: the run.
        shared: other processes of the job derive the same id.
        ranks: rank, local_rank and world_size of this process.
        job: what the id was derived from: launcher, key, name; empty for a process without a job.
        number: counts the runs that this process has started in its job, from 1.
    """

    __slots__ = ("job", "number", "ranks", "run_id", "shared")

    def __init__(
        self, run_id: str, shared: bool, ranks: dict[str, int | None], job: dict[str, str], number: int = 1
    ) -> None:
        self.run_id = run_id
        self.shared = shared
        self.ranks = ranks
        self.job = job
        self.number = number

    def default_name(self, project: str, directory: str) -> str:
        """Return the name of a run that was given none: the job's name, else words and a number."""
        name = self.job.get("name")
        if name:
            return name if self.number == 1 else f"{name}-{self.number}"
        return next(names_of(self.run_id)) if self.shared else free_name(self.run_id, project, directory)

    def about(self, values: Mapping[str, Any], directory: str) -> dict[str, Any]:
        """Return the job and default name to record with the run; empty without them."""
        about: dict[str, Any] = {"job": self.job} if self.job else {}
        if not values["name"]:
            about["default_name"] = self.default_name(values["project"], directory)
        return about


def identify(values: Mapping[str, Any], environ: Mapping[str, str]) -> RunIdentity:
    """Return the run that this process starts or joins, from its settings and its launcher.

    The id is the configured one, else eight characters: derived from the launcher's job key, so that every
    rank computes the same id, or random without a job. A second run in the same job gets the id `<id>-2`, and
    so on.
    """
    job = launcher.identity(environ)
    ranks: dict[str, int | None] = {}
    if job is not None:
        ranks = {"rank": job.rank, "local_rank": job.local_rank, "world_size": job.world_size}
        if (
            job.launcher == "lightning"
            and (parent := spawned_worker.of_parent())
            and parent.pid == os.getppid()
        ):
            return RunIdentity(
                parent.run_id, True, ranks, {}
            )  # rank 0 has opened it before it started this one
    configured = values["run_id"]
    if configured and environ.get(SETTINGS["run_id"].variable) != configured:
        return RunIdentity(str(configured), False, ranks, {})
    derived_from: dict[str, str] = {}
    if job is not None and job.key is not None:
        derived_from = {"launcher": job.launcher, "key": job.key}
        if job.name:
            derived_from["name"] = _printable(job.name)
    if not configured and not derived_from:
        return RunIdentity(new_run_id(), False, ranks, {})
    base = str(configured) if configured else short_id(derived_from["key"])
    number = _begun[base] = _begun.get(base, 0) + 1
    return RunIdentity(base if number == 1 else f"{base}-{number}", True, ranks, derived_from, number)


def short_id(key: str) -> str:
    """Return a stable hash of a text: eight letters and digits, the first a letter."""
    try:
        from _blake2 import blake2b  # `hashlib` would load OpenSSL, which takes 6 ms at every rank's start
    except ImportError:
        from hashlib import blake2b
    digest = blake2b(key.encode("utf-8", "surrogateescape"), digest_size=16).digest()
    return _letters(int.from_bytes(digest, "little"))


def new_run_id() -> str:
    """Return eight random letters and digits, the first a letter."""
    # `secrets` would import hashlib and hmac, which takes 6 ms at every script's start.
    return _letters(int.from_bytes(os.urandom(16), "little"))


def as_run_id(key: str) -> str:
    """Return a text as a run id: unchanged if it is valid, else its valid characters and a checksum."""
    try:
        return paths.check_run_id(key)
    except ValueError:
        return f"{paths.safe_name(key)[:48]}-{zlib.crc32(key.encode()):08x}"


def _letters(number: int) -> str:
    letters = []
    for alphabet in (_LETTERS[10:], *[_LETTERS] * (_LENGTH - 1)):
        number, digit = divmod(number, len(alphabet))
        letters.append(alphabet[digit])
    return "".join(letters)


def _printable(name: str) -> str:
    """Return a job's name as a valid run name."""
    name = "".join("_" if not letter.isprintable() or letter in "/\\" else letter for letter in name)
    return name.strip()[:_MAX_NAME_LENGTH]
