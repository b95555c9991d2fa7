"""Which run a process belongs to, and what that is called: the same in all processes of a job."""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from runvitals.environment import launcher
from runvitals.journal import paths
from runvitals.sdk.run_names import free_name, names_of
from runvitals.sdk.settings import SETTINGS

_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
_LENGTH = 8
_LONGEST_NAME = 128

# How many runs of one job this process has begun. All ranks count alike, so the second run of each has the
# same id.
_begun: dict[str, int] = {}


class Identity(NamedTuple):
    """A run, as one of its processes knows it.

    Args:
        run_id: the run.
        shared: other processes of the same job come to the same id.
        place: this process among those of the job: rank, local_rank, world_size.
        job: what a job's id was derived from: launcher, key, name; empty for a process that is no job's.
        number: which run of its job it is that this process begins, from 1.
    """

    run_id: str
    shared: bool
    place: dict[str, int | None]
    job: dict[str, str]
    number: int = 1

    def default_name(self, project: str, directory: str) -> str:
        """What to call the run where nobody said: by its job's own name, else by words and a number."""
        name = self.job.get("name")
        if name:
            return name if self.number == 1 else f"{name}-{self.number}"
        return next(names_of(self.run_id)) if self.shared else free_name(self.run_id, project, directory)

    def about(self, values: Mapping[str, Any], directory: str) -> dict[str, Any]:
        """What is to be recorded of it beside the settings."""
        about: dict[str, Any] = {"job": self.job} if self.job else {}
        if not values["name"]:
            about["default_name"] = self.default_name(values["project"], directory)
        return about


def identify(values: Mapping[str, Any], environ: Mapping[str, str]) -> Identity:
    """The run that this process is to begin or join, by its settings and whoever launched it.

    The id is the one that was set, else eight characters: of a job derived from what tells it from all
    others, so that every rank comes to the same, else random. The second run that a process begins under one
    job's id is `<id>-2`, and so on.
    """
    job = launcher.identity(environ)
    place: dict[str, int | None] = {}
    if job is not None:
        place = {"rank": job.rank, "local_rank": job.local_rank, "world_size": job.world_size}
    given = values["run_id"]
    if given and environ.get(SETTINGS["run_id"].variable) != given:
        return Identity(str(given), False, place, {})
    derived_from: dict[str, str] = {}
    if job is not None and job.key is not None:
        derived_from = {"launcher": job.launcher, "key": job.key}
        if job.name:
            derived_from["name"] = _printable(job.name)
    if not given and not derived_from:
        return Identity(new_run_id(), False, place, {})
    base = str(given) if given else short_id(derived_from["key"])
    number = _begun[base] = _begun.get(base, 0) + 1
    return Identity(base if number == 1 else f"{base}-{number}", True, place, derived_from, number)


def short_id(key: str) -> str:
    """Eight letters and digits of a text, the first a letter: the same everywhere, another of any other."""
    try:
        from _blake2 import blake2b  # `hashlib` would load OpenSSL: 6 ms of every rank's start
    except ImportError:
        from hashlib import blake2b
    digest = blake2b(key.encode("utf-8", "surrogateescape"), digest_size=16).digest()
    return _letters(int.from_bytes(digest, "little"))


def new_run_id() -> str:
    """Eight random letters and digits, the first a letter."""
    # `secrets` would import hashlib and hmac: 6 ms of every training script's start.
    return _letters(int.from_bytes(os.urandom(16), "little"))


def as_run_id(key: str) -> str:
    """A text as a run id: itself where it can be one, else what can be kept of it and a checksum of all
    of it.
    """
    try:
        return paths.check_run_id(key)
    except ValueError:
        return f"{paths.safe_name(key)[:48]}-{zlib.crc32(key.encode()):08x}"


def _letters(number: int) -> str:
    letters = []
    for alphabet in (_LETTERS[10:], *[_LETTERS] * (_LENGTH - 1)):
        number, place = divmod(number, len(alphabet))
        letters.append(alphabet[place])
    return "".join(letters)


def _printable(name: str) -> str:
    """A job's name as a run may have it."""
    name = "".join("_" if not letter.isprintable() or letter in "/\\" else letter for letter in name)
    return name.strip()[:_LONGEST_NAME]
