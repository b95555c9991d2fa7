"""Images from elsewhere."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.model.media_types import image_type
from runvitals.server.outbound.policy import Blocked
from runvitals.server.user_content.image_links import ImageLinks
from runvitals.server.user_content.outside_images import (
    FAILURE_KEPT_S,
    KEPT_S,
    MAX_AT_A_TIME,
    NoImage,
    OutsideImages,
    TooManyFetches,
)
from tests.patience import PATIENCE_S
from tests.server.outbound.site import Answer, Site, serving

PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 100
SVG = b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
LINKS = ImageLinks(b"k" * 32)


class Cache:
    """Images from the site of a test, at a time that the test sets."""

    def __init__(self, folder: Path, site: Site, max_cache_bytes: int = 1_000_000) -> None:
        self.folder = folder
        self.site = site
        self.now_s = 1_800_000_000.0
        self.images = OutsideImages(str(folder), site.fetcher(), lambda: self.now_s, max_cache_bytes)

    def get(self, path: str) -> bytes:
        return self.images.image(f"https://site.example{path}").body


def parts(url: str) -> tuple[str, str]:
    address = LINKS.address(url)
    assert address is not None
    _, _, _, signature, name = address.split("/")
    return signature, name


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with serving(tmp_path, "site.example") as running:
        yield running


@pytest.fixture
def cache(tmp_path: Path, site: Site) -> Cache:
    return Cache(tmp_path / "cache", site)


def test_an_image_is_fetched_once_a_day(cache: Cache, site: Site) -> None:
    site.answers["/a.png"] = (200, {"Content-Type": "text/html", "Set-Cookie": "a=b"}, PNG)
    for _ in range(3):
        assert cache.get("/a.png") == PNG
    assert len(site.requests) == 1
    assert not {"Referer", "Cookie"} & site.requests[0][1].keys()
    cache.now_s += KEPT_S
    assert cache.get("/a.png") == PNG
    assert len(site.requests) == 2


def test_only_what_this_server_signed_has_a_url() -> None:
    signature, name = parts("https://site.example/a.png")
    _, other = parts("https://site.example/b.png")
    assert LINKS.url(signature, name) == "https://site.example/a.png"
    off = ImageLinks(b"k" * 32, enabled=False)
    for links, given in (
        (LINKS, (signature, other)),
        (LINKS, ("0" * 32, name)),
        (LINKS, ("é", name)),
        (LINKS, (signature, "é")),
        (ImageLinks(b"x" * 32), (signature, name)),
        (off, (signature, name)),
    ):
        with pytest.raises(Blocked):
            links.url(*given)
    assert off.address("https://site.example/a.png") is None
    assert LINKS.address("http://site.example/a.png") is None
    assert LINKS.address("https://site.example/" + "a" * 2000) is None


def test_what_is_no_image_is_remembered_for_a_while(cache: Cache, site: Site) -> None:
    site.answers["/a.png"] = (200, {"Content-Type": "image/png"}, b"<html><script>alert(1)</script>")
    for _ in range(3):
        with pytest.raises(NoImage):
            cache.get("/a.png")
    assert len(site.requests) == 1
    site.answers["/a.png"] = (200, {}, PNG)
    cache.now_s += FAILURE_KEPT_S
    assert cache.get("/a.png") == PNG


def test_errors_large_answers_and_addresses_inside_are_no_images(cache: Cache, site: Site) -> None:
    site.answers["/404.png"] = (404, {}, PNG)
    site.answers["/large.png"] = (200, {}, PNG + b"x" * 1024 * 1024)
    site.answers["/inside.png"] = (302, {"Location": "https://127.0.0.1/"}, b"")
    site.answers["/far.png"] = (302, {"Location": "/far.png"}, b"")
    for path in ("/404.png", "/large.png", "/inside.png", "/far.png"):
        with pytest.raises(NoImage):
            cache.get(path)
    assert {address for address, _ in site.reached} == {"93.184.215.14"}


def test_an_svg_is_known_as_such(cache: Cache, site: Site) -> None:
    site.answers["/a.svg"] = (200, {}, SVG)
    for _ in range(2):  # fetched, and from the cache
        image = cache.images.image("https://site.example/a.svg")
        assert (image.media_type, image.body) == ("image/svg+xml", SVG)


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"\0\0\0 ftypavif", "image/avif"),
        (b"<svg>", "image/svg+xml"),
        (b"\xef\xbb\xbf\n<!-- made by x -->\n<svg width='1'>", "image/svg+xml"),
        (b"<svgx>", None),
        (b"<html><svg>", None),
        (b"<?xml version='1.0'?><html/>", None),
        (b"RIFF\0\0\0\0AVI ", None),
        (b"%PDF-1.7", None),
        (b"", None),
    ],
)
def test_types_by_the_first_bytes(body: bytes, media_type: str | None) -> None:
    assert image_type(body) == media_type


def test_the_cache_has_a_size_and_an_age(cache: Cache, site: Site, tmp_path: Path) -> None:
    small = Cache(cache.folder, site, max_cache_bytes=2 * len(PNG) + 40)
    for number in range(4):
        site.answers[f"/{number}.png"] = (200, {}, PNG)
        small.get(f"/{number}.png")
        small.now_s += 60
    assert small.images.trim() == 2
    assert small.get("/3.png") == PNG
    assert len(site.requests) == 4
    small.get("/0.png")
    assert len(site.requests) == 5
    small.now_s += KEPT_S
    assert small.images.trim() == 3
    assert os.listdir(small.folder) == []


def test_a_file_that_is_gone_when_its_turn_comes_does_not_stop_trimming(cache: Cache, site: Site) -> None:
    site.answers["/a.png"] = (200, {}, PNG)
    cache.get("/a.png")
    os.symlink("renamed-by-another-thread", os.path.join(cache.folder, "listed-but-gone"))
    assert cache.images.trim() == 0


def test_few_are_fetched_at_a_time(cache: Cache, site: Site) -> None:
    entered = threading.Semaphore(0)
    released = threading.Event()

    def wait(handler: object) -> Answer:
        entered.release()
        released.wait(PATIENCE_S)
        return 200, {}, PNG

    threads = []
    for number in range(MAX_AT_A_TIME):
        site.answers[f"/{number}.png"] = wait
        threads.append(threading.Thread(target=lambda path=f"/{number}.png": _quietly(cache, path)))
        threads[-1].start()
    for _ in threads:
        assert entered.acquire(timeout=PATIENCE_S)
    with pytest.raises(TooManyFetches):
        cache.get("/more.png")
    released.set()
    for thread in threads:
        thread.join(PATIENCE_S)


def _quietly(cache: Cache, path: str) -> None:
    try:
        cache.get(path)
    except NoImage:
        return  # a slow machine: the fetch took longer than its limit
