"""Images in a terminal: decoding, half blocks, sixels, kitty's protocol, and the pane that shows them."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from runvitals.journal import frames, paths
from runvitals.terminal.leet.app import LeetApp
from runvitals.terminal.leet.images import kitty
from runvitals.terminal.leet.images.decoding import MAX_PIXELS, UnreadableImage, decode
from runvitals.terminal.leet.images.half_blocks import rows_of
from runvitals.terminal.leet.images.sixel import sixels
from runvitals.terminal.leet.images.terminal_graphics import PLACEHOLDER, graphics
from runvitals.terminal.leet.opening import OpeningTarget, Surroundings, target
from runvitals.terminal.leet.run_screen import RunScreen
from runvitals.terminal.leet.runs_screen import RunsScreen
from runvitals.terminal.leet.sources.journal_catalogue import JournalCatalogue
from runvitals.terminal.leet.sources.wandb import WandbSource
from tests.readers.journals.journals import T0, Monitor, Trainer
from tests.readers.wandb_files import files
from tests.terminal.leet.test_app import EVIL, screen_of, until


def png(image: Image.Image, kind: str = "PNG") -> bytes:
    out = io.BytesIO()
    image.save(out, kind)
    return out.getvalue()


def two_by_two() -> Image.Image:
    image = Image.new("RGB", (2, 2))
    image.putdata([(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)])
    return image


def test_images_are_scaled_to_fit() -> None:
    assert decode(png(Image.new("RGB", (200, 100))), 40, 40).size == (40, 20)
    assert decode(png(Image.new("L", (2, 4))), 40, 40).size == (20, 40)
    transparent = Image.new("RGBA", (1, 1), (255, 0, 0, 0))
    assert decode(png(transparent), 1, 1).getpixel((0, 0)) == (0, 0, 0)
    for kind in ("JPEG", "GIF", "WEBP"):
        assert decode(png(two_by_two(), kind), 2, 2).size == (2, 2)


def test_what_cannot_be_shown_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnreadableImage, match="not one of PNG"):
        decode(b"<svg/>", 1, 1)
    with pytest.raises(UnreadableImage, match="damaged"):
        decode(png(Image.effect_noise((64, 64), 50))[:-600], 9, 9)
    large = png(Image.new("1", (MAX_PIXELS // 1000 + 1, 1000)))
    with pytest.raises(UnreadableImage, match="too many"):
        decode(large, 9, 9)


def test_half_blocks_have_two_pixels_in_a_cell() -> None:
    assert rows_of(two_by_two(), True) == [[("▀", "#ff0000on#0000ff"), ("▀", "#00ff00on#ffffff")]]
    odd = Image.new("RGB", (3, 3), (1, 2, 3))
    assert rows_of(odd, True) == [[("▀▀▀", "#010203on#010203")], [("▀▀▀", "#010203")]]
    grey = Image.new("L", (2, 2))
    grey.putdata([0, 255, 0, 255])
    assert rows_of(grey.convert("RGB"), False) == [[(" @", "")]]


def test_sixels() -> None:
    text = sixels(Image.new("RGB", (10, 7), (255, 0, 0)))
    assert text.startswith('\x1bP0;1q"1;1;10;7#0;2;100;0;0')
    assert text.endswith("#0!10~$-#0!10@$-\x1b\\")  # six rows, and one
    assert len(set(re.findall("#[0-9]+;2", sixels(two_by_two())))) == 4


def test_kitty_sends_an_image_once_and_shows_it_in_cells() -> None:
    image = Image.effect_noise((100, 100), 80).convert("RGB")
    sent = kitty.transmission(image, 7, 20, 10)
    chunks = re.findall(r"\x1b_G([^;]*);([^\x1b]*)\x1b\\", sent)
    assert len(chunks) > 1
    assert chunks[0][0] == "a=T,U=1,f=100,q=2,i=7,c=20,r=10,m=1"
    assert chunks[-1][0] == "m=0"
    again = Image.open(io.BytesIO(base64.b64decode("".join(data for _, data in chunks))))
    assert again.tobytes() == image.tobytes()
    rows = kitty.placeholders(7, 3, 2)
    assert [row[0][1] for row in rows] == ["#000007"] * 2
    assert [row[0][0].count(PLACEHOLDER) for row in rows] == [3, 3]
    assert rows[0][0][0] != rows[1][0][0]


@pytest.mark.parametrize(
    ("setting", "environ", "shown"),
    [
        ("sixel", {}, "sixel"),
        ("auto", {"TERM": "xterm-kitty"}, "kitty"),
        ("auto", {"TERM": "xterm-kitty", "TMUX": "/tmp/x"}, "blocks"),
        ("auto", {"TERM": "xterm-kitty", "NO_COLOR": "1"}, "blocks"),
        ("auto", {"TERM_PROGRAM": "ghostty"}, "kitty"),
        ("auto", {"TERM": "xterm-256color"}, "blocks"),
    ],
)
def test_how_images_are_shown(setting: str, environ: dict[str, str], shown: str) -> None:
    assert graphics(setting, environ) == shown  # the tests have no terminal that could be asked


def plant(folder: Path, names: Sequence[str] = ("samples",)) -> Trainer:
    Monitor(folder).end(T0 + 5000)
    trainer = Trainer(folder)
    for step, colour in enumerate(("red", "lime", "blue")):
        content = png(Image.new("RGB", (32, 16), colour))
        sha256 = hashlib.sha256(content).hexdigest()
        path = paths.content_path(paths.run_dir("abc", str(folder)), sha256)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(path).write_bytes(content)
        file: dict[str, Any] = {"sha256": sha256, "bytes": len(content), "type": "image/png"}
        items = [{**file, "caption": f"{colour} {EVIL}"}, {"error": EVIL}]
        for name in names:
            value = {"t": T0 + step, "key": name, "kind": "image", "step": step, "items": items}
            assert trainer.journal.json(frames.MEDIA, value)
    return trainer


def test_images_of_a_run(tmp_path: Path) -> None:
    trainer = plant(tmp_path)

    async def use() -> None:
        app = LeetApp(OpeningTarget(JournalCatalogue(str(tmp_path)), "abc"), 0.05)
        async with app.run_test(size=(120, 44)) as pilot:
            screen = await screen_of(pilot, RunScreen)
            await until(pilot, lambda: screen.media.has_images)
            await pilot.press("3")
            await until(pilot, lambda: "step 2 · 3 of 3" in screen.media.text)
            await until(pilot, lambda: "▀" * 20 in screen.media.text and "blue" in screen.media.text)
            assert screen.media.text.replace("\n", "").isprintable()
            await pilot.press("left")
            await until(pilot, lambda: "step 1 · 2 of 3" in screen.media.text)
            await pilot.press("home")
            await until(pilot, lambda: "step 0" in screen.media.text and "red" in screen.media.text)
            await pilot.press("enter")
            await until(pilot, lambda: screen.media.size.height > 35)
            await pilot.press("k")
            await until(pilot, lambda: "half blocks only" in screen.footer.text)
            await pilot.press("escape", "escape")
            await until(pilot, lambda: screen.media.size.height < 35)
            await pilot.press("3")
            await until(pilot, lambda: not screen.media.is_on_screen)
            await pilot.press("q")

    asyncio.run(use())

    async def with_kitty() -> None:
        opened = OpeningTarget(JournalCatalogue(str(tmp_path)), "abc")
        async with LeetApp(opened, 0.05, graphics="kitty").run_test(size=(120, 44)) as pilot:
            screen = await screen_of(pilot, RunScreen)
            await until(pilot, lambda: screen.media.has_images)
            await pilot.press("3")
            await until(pilot, lambda: PLACEHOLDER in screen.media.text)
            await pilot.press("k")
            await until(pilot, lambda: "▀▀" in screen.media.text)
            await pilot.press("k")
            await until(pilot, lambda: PLACEHOLDER in screen.media.text)

    asyncio.run(with_kitty())
    trainer.close()


def test_images_of_several_names(tmp_path: Path) -> None:
    trainer = plant(tmp_path, ("first", "second", "third"))

    async def use() -> None:
        app = LeetApp(OpeningTarget(JournalCatalogue(str(tmp_path)), None), 0.05)
        async with app.run_test(size=(160, 50)) as pilot:
            screen = await screen_of(pilot, RunsScreen)  # of the run at the cursor
            await until(pilot, lambda: screen.table.runs)
            await pilot.press("3")
            await until(pilot, lambda: screen.media.text.count("step 2 · 3 of 3") == 2)
            assert "page 1 of 2" in screen.media.text
            await pilot.press("left")  # only of the first
            await until(pilot, lambda: "step 1 · 2 of 3" in screen.media.text)
            assert "step 2 · 3 of 3" in screen.media.text
            await pilot.press("d", "l", "up")  # ten steps back, of both
            await until(pilot, lambda: screen.media.text.count("step 0 · 1 of 3") == 2)
            await pilot.press("n")  # the others, too
            await until(pilot, lambda: "third" in screen.media.text and "linked" in screen.media.text)
            await until(pilot, lambda: screen.media.text.count("step 0 · 1 of 3") == 1)
            await pilot.press("r", "2")
            await until(pilot, lambda: screen.media.text.count("step 0 · 1 of 3") == 3)
            await pilot.press("enter")
            await until(pilot, lambda: screen.media.size == (160, 48) and "third" in screen.media.text)
            await pilot.press("a", "end")
            await until(pilot, lambda: "second" in screen.media.text and "step 2" in screen.media.text)
            await pilot.press("escape")
            await until(pilot, lambda: screen.runs.is_on_screen and "first" in screen.media.text)

    asyncio.run(use())
    trainer.close()


def test_images_of_a_wandb_file(tmp_path: Path) -> None:
    images = tmp_path / "files" / "media" / "images"
    images.mkdir(parents=True)
    for name in ("a", "b", "c"):
        (images / f"{name}.png").write_bytes(png(two_by_two()))
    (tmp_path / "secret.png").write_bytes(png(two_by_two()))
    (images / "link.png").symlink_to(tmp_path / "secret.png")
    image = {"_type": "image-file", "path": "media/images/a.png", "caption": EVIL, "size": 70, "width": 2}
    several = {
        "_type": "images/separated", "count": 2, "captions": ["first"], "width": 2,
        "filenames": ["media/images/b.png", "media/images/c.png"],
    }  # fmt: skip
    outside = [
        {**image, "path": path} for path in ("../secret.png", "/etc/hostname", "media/images/link.png")
    ]
    path = files.write(
        tmp_path / "run-abc.wandb",
        files.started(),
        files.row(0, 1, {"loss": 1.0, "samples": image, "net": {"grid": several, "size": 3.0}}),
        files.row(1, 2, {"samples": outside[0], "more": outside[1], "link": outside[2]}),
    )

    source = WandbSource(str(path))
    source.poll()
    assert [(key.key, key.count) for key in source.media_keys()] == [
        ("samples", 2), ("net.grid", 1), ("more", 1), ("link", 1),
    ]  # fmt: skip
    assert source.logged_names() == ["loss", "net.size"]  # the sizes of images are no metrics
    (grid,) = source.media("net.grid")
    assert [(item["file"][-5:], item["caption"]) for item in grid.items] == [
        ("b.png", "first"),
        ("c.png", ""),
    ]
    assert source.content(grid.items[1]) == png(two_by_two())
    for key, index in (("samples", 1), ("more", 0), ("link", 0)):
        with pytest.raises(OSError, match="outside the folder of the run"):
            source.content(source.media(key)[index].items[0])
    source.close()

    async def use() -> None:
        opened = target(str(path), Surroundings("/nowhere", "/", None, {}))
        async with LeetApp(opened, 0.05).run_test(size=(120, 44)) as pilot:
            screen = await screen_of(pilot, RunScreen)
            await until(pilot, lambda: screen.media.has_images)
            await pilot.press("3", "home")
            await until(pilot, lambda: "step 0 · 1 of 2" in screen.media.text and "▀▀" in screen.media.text)
            await pilot.press("right")
            await until(pilot, lambda: "outside the folder" in screen.media.text)
            assert screen.media.text.replace("\n", "").isprintable()

    asyncio.run(use())
