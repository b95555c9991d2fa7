"""Images from elsewhere, fetched by this server and kept for a day.

Only formats that browsers draw are passed on, recognised by their first bytes. SVG may hold scripts, so it is
served with a policy that runs and loads nothing; `<img>` ignores scripts anyway.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from runvitals.base.private_folders import make_private
from runvitals.model.media_types import image_type
from runvitals.server.outbound.fetcher import Fetcher, FetchFailed, FetchLimits
from runvitals.server.outbound.policy import Blocked

LIMITS: Final = FetchLimits(total_s=5.0, body_bytes=1024 * 1024, redirects=2)
KEPT_S: Final = 24 * 3600.0
FAILURE_KEPT_S: Final = 600.0
MAX_CACHE_BYTES: Final = 500 * 1024 * 1024
MAX_AT_A_TIME: Final = 8
_SUFFIX: Final = ".image"
_HEADERS: Final = {"Accept": "image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8"}
_FETCHES_PER_TRIM: Final = 50


class NoImage(Exception):
    """There is no image to show; the text says why."""


class TooManyFetches(Exception):
    """So many images are being fetched that this one must be asked for again."""


@dataclass(frozen=True, slots=True)
class FetchedImage:
    """An image as it is served. One of the type `SVG` needs a policy under which nothing in it runs."""

    media_type: str
    body: bytes


class OutsideImages:
    """Fetches images whose addresses `ImageLinks` made. Thread-safe; blocks while it fetches.

    Args:
        folder: for the cache; created if missing.
        clock: seconds since 1970, as of the files' times.
    """

    def __init__(
        self,
        folder: str,
        fetcher: Fetcher,
        clock: Callable[[], float],
        max_cache_bytes: int = MAX_CACHE_BYTES,
    ) -> None:
        make_private(folder)
        self._folder = folder
        self._fetcher = fetcher
        self._clock = clock
        self._max_cache_bytes = max_cache_bytes
        self._slots = threading.BoundedSemaphore(MAX_AT_A_TIME)
        self._fetches = itertools.count()
        # A draft gets the time of our clock before its final name: until then it may look old.
        self._changing = threading.Lock()

    def image(self, url: str) -> FetchedImage:
        """Return the image at a URL, which `ImageLinks.url` has found to be in a text.

        Raises:
            NoImage: there is none at that URL, it is too large, too slow or of another type, or its URL
                leads into the network.
            TooManyFetches: try again later.
        """
        path = os.path.join(self._folder, hashlib.sha256(url.encode()).hexdigest() + _SUFFIX)
        kept = self._kept_image(path)
        if kept is None:
            kept = self._fetch(url)
            with self._changing:
                self._keep(path, kept)
            if next(self._fetches) % _FETCHES_PER_TRIM == 0:
                self.trim()
        if not kept.body:
            raise NoImage("there is no image at this address, or it is too large")
        return kept

    def trim(self) -> int:
        """Remove old files, and the oldest beyond the size of the cache; returns how many."""
        with self._changing:
            return self._trim()

    def _trim(self) -> int:
        files = []
        for entry in os.scandir(self._folder):
            # Another process may just have given this file its final name, or removed it.
            with contextlib.suppress(FileNotFoundError):
                status = entry.stat()
                files.append((status.st_mtime, status.st_size, entry.path))
        oldest_s = self._clock() - KEPT_S
        total = sum(size for _, size, _ in files)
        removed = 0
        for changed_s, size, path in sorted(files):
            if changed_s > oldest_s and total <= self._max_cache_bytes:
                break
            _remove(path)
            total -= size
            removed += 1
        return removed

    def _kept_image(self, path: str) -> FetchedImage | None:
        try:
            with open(path, "rb") as file:
                age_s = self._clock() - os.fstat(file.fileno()).st_mtime
                media_type, _, body = file.read().partition(b"\n")
        except FileNotFoundError:
            return None
        image = FetchedImage(media_type.decode("ascii", "replace"), body)
        return image if 0 <= age_s < (KEPT_S if body else FAILURE_KEPT_S) else None

    def _keep(self, path: str, image: FetchedImage) -> None:
        draft = f"{path}.{secrets.token_hex(4)}"
        try:
            with open(draft, "xb") as file:
                file.write(image.media_type.encode("ascii") + b"\n" + image.body)
            now_s = self._clock()
            os.utime(draft, (now_s, now_s))
            os.replace(draft, path)
        except BaseException:
            _remove(draft)
            raise

    def _fetch(self, url: str) -> FetchedImage:
        """Return the image at a URL; an empty one if there is none, which is remembered for a while."""
        if not self._slots.acquire(blocking=False):
            raise TooManyFetches("too many images are being fetched; try again in a few seconds")
        try:
            response = self._fetcher.get(url, LIMITS, _HEADERS)
        except (FetchFailed, Blocked):
            return FetchedImage("", b"")
        finally:
            self._slots.release()
        media_type = image_type(response.body) if response.status == 200 else None
        return FetchedImage("", b"") if media_type is None else FetchedImage(media_type, response.body)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return  # another process removed it
