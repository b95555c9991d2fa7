"""Finds the objects of cold storage that are missing or damaged."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from runvitals.store.samples.cold.reading import ColdLocation, ColdLost
from runvitals.store.samples.cold.storage import ColdSettings, ColdStorage

_CACHE_BYTES = 256 << 20
_MISSING, _SIZE, _CONTENT = (
    "are missing in {}, such as {}",
    "in {} do not have their size, such as {}",
    "in {} do not have the content that was put there, such as {}",
)


class ObjectCheck:
    """Compares objects with what month files say of them. A `ColdReader` that reads no lost object twice.

    Args:
        sizes: of the objects, by their SHA-256.

    Attributes:
        lost: why they are, by their SHA-256.
    """

    def __init__(self, storage: ColdStorage, sizes: Mapping[str, int]) -> None:
        self._storage = storage
        self._sizes = sizes
        self.lost: dict[str, str] = {}

    def compare_sizes(self) -> None:
        """Find those that are missing or have another size.

        Raises:
            ColdUnavailable: they cannot be listed at present.
        """
        stored = self._storage.sizes()
        for sha256, size in self._sizes.items():
            if sha256 not in stored:
                self.lost[sha256] = _MISSING
            elif stored[sha256] != size:
                self.lost[sha256] = _SIZE

    def compare_contents(self) -> None:
        """Find those of the others that have another content.

        Raises:
            ColdUnavailable: one cannot be read at present.
        """
        for sha256 in self._sizes.keys() - self.lost.keys():
            try:
                self._storage.fetch(sha256)
            except ColdLost:
                self.lost[sha256] = _CONTENT

    def read(self, location: ColdLocation) -> bytes:
        """Return the bytes at a place, and remember an object that is lost."""
        if location.sha256 in self.lost:
            raise ColdLost(f"the object {location.sha256} is lost")
        try:
            return self._storage.read(location)
        except ColdLost:
            self.lost[location.sha256] = _CONTENT
            raise

    def forget(self, location: ColdLocation) -> None:
        """Fetch the object again when it is read next."""
        self._storage.forget(location)

    def reasons(self, sizes: Mapping[str, int]) -> dict[str, list[str]]:
        """Why objects of a month file are lost, each with their SHA-256."""
        by_reason: dict[str, list[str]] = {}
        for sha256 in sorted(self.lost.keys() & sizes.keys()):
            by_reason.setdefault(self.lost[sha256], []).append(sha256)
        address = self._storage.settings.address
        return {
            f"{len(lost)} of {len(sizes)} objects {reason.format(address, lost[0])}": lost
            for reason, lost in by_reason.items()
        }


@contextmanager
def objects_checked(address: str, sizes: Mapping[str, int]) -> Iterator[ObjectCheck]:
    """Check objects as they are in cold storage, not in the cache of a store, which stays as it is."""
    with tempfile.TemporaryDirectory(prefix="runvitals-cold-") as folder:
        yield ObjectCheck(ColdStorage(ColdSettings(address, cache_bytes=_CACHE_BYTES), folder), sizes)
