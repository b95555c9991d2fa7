"""What `log` records besides numbers, and `save`: whatever a program passes in, the training goes on."""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as PilImages

import runvitals
from runvitals.base.json_codec import loads
from runvitals.journal import frames, paths
from runvitals.journal.reader import read_run
from runvitals.model.media_types import media_type
from runvitals.readers.journals.media import saved_files
from runvitals.readers.journals.run_handle import open_run
from runvitals.sdk.media.base import is_media
from runvitals.sdk.media.run_files import FileTooLarge, RunFiles
from runvitals.sdk.media.saved_files import matching_files
from runvitals.sdk.media.values import to_media
from tests.sdk.runs import Journals, Start, finished, succeeded


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    return RunFiles(str(tmp_path / "run"))


def content(tmp_path: Path, item: dict[str, Any]) -> bytes:
    return Path(paths.content_path(str(tmp_path / "run"), item["sha256"])).read_bytes()


def decoded(body: bytes) -> Any:
    return numpy.asarray(PilImages.open(io.BytesIO(body)))


# Images


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_images_of_bytes_are_exact(files: RunFiles, tmp_path: Path, channels: int) -> None:
    array = numpy.random.default_rng(1).integers(0, 256, (5, 7, channels), numpy.uint8)
    item = runvitals.Image(array, caption="a cat").item(files)
    assert (item["width"], item["height"], item["type"], item["caption"]) == (7, 5, "image/png", "a cat")
    assert (decoded(content(tmp_path, item)).reshape(array.shape) == array).all()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (numpy.array([[0.0, 0.5], [1.0, float("nan")]]), [[0, 128], [255, 0]]),
        (numpy.array([[-5, 300]]), [[0, 255]]),
        (numpy.array([[True, False]]), [[255, 0]]),
        (numpy.array([[0.0, 127.6, 999.0]]), [[0, 128, 255]]),
        (numpy.array([[float("inf"), -float("inf")]]), [[255, 0]]),
    ],
    ids=["floats", "integers", "booleans", "large floats", "infinities"],
)
def test_values_of_pixels(files: RunFiles, tmp_path: Path, value: Any, expected: Any) -> None:
    assert decoded(content(tmp_path, runvitals.Image(value).item(files))).tolist() == expected


def test_channels_may_come_first(files: RunFiles, tmp_path: Path) -> None:
    array = numpy.random.default_rng(1).integers(0, 256, (3, 20, 30), numpy.uint8)
    assert (decoded(content(tmp_path, runvitals.Image(array).item(files))) == array.transpose(1, 2, 0)).all()


class Tensor:
    """As PyTorch's: it is on a device, and has a gradient."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.dtype = array.dtype
        self.shape = array.shape

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Any:
        return self

    def numpy(self) -> Any:
        return self.array


def test_a_tensor_is_an_image(files: RunFiles, tmp_path: Path) -> None:
    item = runvitals.Image(Tensor(numpy.zeros((3, 8, 9), "float32"))).item(files)
    assert decoded(content(tmp_path, item)).shape == (8, 9, 3)


def test_images_of_pil_keep_their_pixels(files: RunFiles, tmp_path: Path) -> None:
    for mode in ("L", "RGB", "RGBA", "P", "1", "CMYK", "F"):
        image = PilImages.new(mode, (4, 3))
        assert is_media(image)
        item = to_media(image).item(files)
        assert (item["width"], item["height"]) == (4, 3), mode
        PilImages.open(io.BytesIO(content(tmp_path, item))).load()


@pytest.mark.parametrize(
    ("mode", "color", "expected"),
    [
        ("LAB", (255, 128, 128), ("RGB", (254, 255, 254))),
        ("CMYK", (0, 0, 0, 0), ("RGB", (255, 255, 255))),
        ("RGBa", (255, 0, 0, 255), ("RGBA", (255, 0, 0, 255))),
        ("La", (9, 255), ("LA", (9, 255))),
        ("I;16", 40_000, ("I;16", 40_000)),
        ("F", 1.0, ("L", 255)),
        ("F", 0.5, ("L", 128)),
        ("F", 200.0, ("L", 200)),
    ],
)
def test_images_of_pil_that_png_does_not_have(
    files: RunFiles, tmp_path: Path, mode: str, color: Any, expected: Any
) -> None:
    item = to_media(PilImages.new(mode, (4, 3), color)).item(files)
    image = PilImages.open(io.BytesIO(content(tmp_path, item)))
    assert (image.mode, image.getpixel((1, 1))) == expected


def test_files_of_images_are_kept_as_they_are(files: RunFiles, tmp_path: Path) -> None:
    bomb = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + b"\xff" * 8 + b"\x08\x02\0\0\0" + bytes(100)
    path = tmp_path / "not-a-name.txt"
    path.write_bytes(bomb)
    for data in (bomb, path, str(path)):
        item = runvitals.Image(data).item(files)  # nothing decodes it
        assert (item["type"], content(tmp_path, item)) == ("image/png", bomb)


@pytest.mark.parametrize(
    "make",
    [
        lambda: runvitals.Image(numpy.zeros((2, 2, 2, 2, 2))),
        lambda: runvitals.Image(numpy.zeros((0, 4))),
        lambda: runvitals.Image(numpy.zeros((0, 4), "uint8")),
        lambda: runvitals.Image(numpy.zeros((4, 0, 3), "uint8")),
        lambda: runvitals.Image(numpy.zeros((1 << 14, 1 << 14), bool)),
        lambda: runvitals.Image(numpy.array([["a"]])),
        lambda: runvitals.Image(b"PK\x03\x04" + bytes(100)),
        lambda: runvitals.Image("/nowhere/x.png"),
        lambda: runvitals.Image("/dev/zero"),
        lambda: runvitals.Image(object()),
        lambda: runvitals.Image(None),
        lambda: runvitals.Audio([1, 2, 3], sample_rate=8000),
        lambda: runvitals.Audio(numpy.zeros(10)),
        lambda: runvitals.Audio(numpy.zeros(10), sample_rate=-1),
        lambda: runvitals.Audio(b"<html>"),
        lambda: runvitals.Video(numpy.zeros((3, 3))),
        lambda: runvitals.Video(numpy.zeros((2, 4, 4, 3)), fps=0),
        lambda: runvitals.Video(b"#!/bin/sh"),
        lambda: runvitals.Histogram(["a"]),
        lambda: runvitals.Histogram([1], bins=10**9),
        lambda: runvitals.Histogram(counts=[1, 2], edges=[1, 2]),
        lambda: runvitals.Histogram(counts=[1, float("nan")], edges=[1, 2, 3]),
        lambda: runvitals.Histogram(counts=[1, -1], edges=[1, 2, 3]),
        lambda: runvitals.Histogram(counts=[1, 1], edges=[1, 3, 2]),
        lambda: runvitals.Histogram(counts=[1], edges=[0, float("inf")]),
        lambda: runvitals.Table(columns=[str(i) for i in range(2000)]),
    ],
)
def test_what_cannot_be_recorded_says_why(files: RunFiles, tmp_path: Path, make: Callable[[], Any]) -> None:
    with pytest.raises((TypeError, ValueError, OSError)):
        make().item(files)
    folder = tmp_path / "run" / "files"
    assert not folder.exists() or list(folder.iterdir()) == []


# Audio, videos, texts, histograms, tables, figures


def test_sounds(files: RunFiles, tmp_path: Path) -> None:
    import wave

    mono = runvitals.Audio(numpy.array([0.0, 1.0, -1.0, 2.0]), sample_rate=8000).item(files)
    with wave.open(io.BytesIO(content(tmp_path, mono))) as sound:
        assert (sound.getframerate(), sound.getnchannels(), sound.getsampwidth()) == (8000, 1, 2)
        assert numpy.frombuffer(sound.readframes(9), "<i2").tolist() == [0, 32767, -32767, 32767]
    stereo = runvitals.Audio(numpy.zeros((2, 500), "int16"), sample_rate=44_100, caption="x").item(files)
    with wave.open(io.BytesIO(content(tmp_path, stereo))) as sound:
        assert (sound.getnchannels(), sound.getnframes()) == (2, 500)
    assert mono["type"] == "audio/wav"


def test_videos_are_animated_images(files: RunFiles, tmp_path: Path) -> None:
    array = numpy.random.default_rng(1).integers(0, 256, (4, 6, 8, 3), numpy.uint8)
    item = runvitals.Video(array, fps=10).item(files)
    video = PilImages.open(io.BytesIO(content(tmp_path, item)))
    assert (video.n_frames, video.info["duration"]) == (4, 100.0)  # type: ignore[attr-defined]
    for number in range(4):
        video.seek(number)
        assert (numpy.asarray(video.convert("RGB")) == array[number]).all()


def test_histograms() -> None:
    values = numpy.array([0.0, 1.0, 1.0, 4.0, float("nan"), float("inf")])
    value = runvitals.Histogram(values, bins=4).item(RunFiles("/nowhere"))["value"]
    assert value["counts"] == [1, 2, 0, 1]
    assert value["edges"] == [0, 1, 2, 3, 4]
    assert (value["count"], value["not_finite"], value["mean"]) == (6, 2, 1.5)
    counts, edges = numpy.histogram([1, 2, 3], bins=2)
    histogram = runvitals.Histogram(counts=counts, edges=edges).item(RunFiles("/nowhere"))["value"]
    assert histogram == {"counts": [1, 2], "edges": [1, 2, 3], "count": 3}
    assert runvitals.Histogram([]).item(RunFiles("/nowhere"))["value"]["counts"] == []


def test_tables(files: RunFiles, tmp_path: Path) -> None:
    table = runvitals.Table(columns=["image", "name", "score", "ok", 5])  # type: ignore[list-item]
    pixels = numpy.zeros((2, 2))
    table.add(runvitals.Image(pixels), "a\0b", numpy.float32(0.5), numpy.bool_(True), None)
    table.add(PilImages.new("L", (3, 3)), 7, float("nan"), False, 2**80)
    with pytest.raises(ValueError, match="1 values for 5 columns"):
        table.add(1)
    item = table.item(files)
    found = loads(content(tmp_path, item))
    assert found["columns"] == ["image", "name", "score", "ok", "5"]
    assert [row[1:] for row in found["rows"]] == [
        ["a\0b", 0.5, True, None], [7, "NaN", False, 2**80],
    ]  # fmt: skip
    assert {file["sha256"] for file in item["files"]} == {row[0]["sha256"] for row in found["rows"]}
    frame = pandas.DataFrame({"x": [1, 2], "day": pandas.to_datetime(["2026-01-01", None])})
    from_frame = loads(content(tmp_path, runvitals.Table(dataframe=frame).item(files)))
    assert from_frame == {"columns": ["x", "day"], "rows": [[1, "2026-01-01 00:00:00"], [2, "NaT"]]}


def test_a_cell_that_cannot_be_recorded_leaves_the_others(files: RunFiles, tmp_path: Path) -> None:
    class Broken:
        def __str__(self) -> str:
            raise OSError("no text")

    class Number(float):
        def __str__(self) -> str:
            return "a number"

    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    table = runvitals.Table(columns=["a", Broken()])  # type: ignore[list-item]
    for cell in (Broken(), Number("nan"), deep, runvitals.Image(tmp_path / "none.png"), 10**400):
        table.add(1, cell)
    stored = loads(content(tmp_path, table.item(files)))
    assert stored["columns"] == ["a", "(Broken: OSError)"]
    assert stored["rows"] == [
        [1, "(Broken: OSError)"],
        [1, "NaN"],
        [1, "(list: RecursionError)"],
        [1, "(Image: FileNotFoundError)"],
        [1, "(an integer of 1329 bits)"],
    ]
    assert list(table.faults) == [
        "a value of type Broken that raises OSError",
        "a value of type list that raises RecursionError",
        "a value of type Image that raises FileNotFoundError",
        "an integer of more than 1023 bits",
    ]
    image = runvitals.Image(numpy.zeros((2, 2)), caption=Broken())  # type: ignore[arg-type]
    assert image.item(files)["caption"] == "(Broken: OSError)"


def test_figures_are_recognised_without_their_libraries(files: RunFiles, tmp_path: Path) -> None:
    class Figure:
        def savefig(self, to: Any, format: str, dpi: int) -> None:
            PilImages.new("RGB", (6, 4)).save(to, format)

    class ChartMedia:
        def to_html(self, include_plotlyjs: bool, full_html: bool) -> str:
            return f"<html>{include_plotlyjs}{full_html}</html>"

    assert not is_media(Figure())
    Figure.__module__, ChartMedia.__module__ = "matplotlib.figure", "plotly.graph_objs._figure"
    drawn = to_media(Figure()).item(files)
    assert (drawn["type"], drawn["width"]) == ("image/png", 6)
    pyplot = ModuleType("matplotlib.pyplot")
    pyplot.savefig = Figure().savefig  # type: ignore[attr-defined]  # of its current figure
    assert to_media(pyplot).item(files) == drawn
    assert not is_media(ModuleType("matplotlib.pyplots"))
    page = to_media(ChartMedia()).item(files)
    assert (page["type"], content(tmp_path, page)) == ("text/html", b"<html>TrueTrue</html>")


def test_text_and_html_are_files(files: RunFiles, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<p>")
    for value, body, kind in (
        (runvitals.Text("ü\ud800"), b"\xc3\xbc?", "text/plain"),
        (runvitals.Html("<b>"), b"<b>", "text/html"),
        (runvitals.Html(tmp_path / "page.html"), b"<p>", "text/html"),
    ):
        item = value.item(files)
        assert (content(tmp_path, item), item["type"]) == (body, kind)


def test_lists_of_other_things_stay_values() -> None:
    for value in ([], [1], [runvitals.Text("a"), 1], "x", None, numpy.zeros(3), {"a": 1}):
        assert not is_media(value)
    assert is_media([runvitals.Text("a"), PilImages.new("L", (1, 1))])


# Files


@given(contents=st.lists(st.binary(max_size=2000), max_size=6))
@settings(max_examples=40)
def test_contents_are_stored_once_under_their_digest(contents: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = RunFiles(folder)
        for body in contents:
            item = files.add(body)
            assert item == {
                "sha256": hashlib.sha256(body).hexdigest(), "bytes": len(body), "type": media_type(body),
            }  # fmt: skip
        stored = (
            {entry.name: Path(entry).read_bytes() for entry in os.scandir(folder + "/files")}
            if contents
            else {}
        )
        assert stored == {hashlib.sha256(body).hexdigest(): body for body in contents}


def test_limits(tmp_path: Path) -> None:
    files = RunFiles(str(tmp_path / "run"), file_bytes=100, run_bytes=150)
    with pytest.raises(FileTooLarge, match="101 bytes; at most 100"):
        files.add(bytes(101))
    files.add(b"a" * 100)
    with pytest.raises(FileTooLarge, match="more than 150 bytes"):
        files.add(b"b" * 60)
    path = tmp_path / "grows"
    path.write_bytes(b"c" * 101)
    with pytest.raises(FileTooLarge):
        files.add_file(str(path))
    assert [entry.name for entry in (tmp_path / "run" / "files").iterdir()] == [
        hashlib.sha256(b"a" * 100).hexdigest()
    ]


def test_a_sparse_file_stays_sparse(files: RunFiles, tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with open(path, "wb") as file:
        file.truncate(1 << 27)
        file.seek(60 << 20)
        file.write(b"data")
    item = files.add_file(str(path))
    stored = os.stat(paths.content_path(str(tmp_path / "run"), item["sha256"]))
    assert (item["bytes"], stored.st_size) == (1 << 27, 1 << 27)
    assert stored.st_blocks * 512 < 8 << 20


def test_only_regular_files_of_the_folder_are_saved(tmp_path: Path) -> None:
    base = tmp_path / "out"
    (base / "sub").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (base / "a.txt").write_text("a")
    (base / "sub" / "b.txt").write_text("b")
    os.mkfifo(base / "fifo.txt")
    (base / "dir.txt").mkdir()
    (base / "out.txt").symlink_to(tmp_path / "secret")
    (base / "in.txt").symlink_to(base / "a.txt")
    (base / "dangling.txt").symlink_to(base / "nothing")
    (base / "sub" / "up").symlink_to(tmp_path)
    faults: list[str] = []
    files = list(matching_files(str(base / "**" / "*"), str(base), faults.append))
    assert [name for name, _ in files] == ["a.txt", "in.txt", "sub/b.txt"]
    assert dict(files)["in.txt"] == str(base / "a.txt")
    assert any("FIFO" in fault for fault in faults)
    assert any("leads out of" in fault for fault in faults)
    assert any("cannot be read" in fault for fault in faults)
    with pytest.raises(ValueError, match="is not in the base"):
        list(matching_files(str(base / "a.txt"), str(base / "sub"), faults.append))
    (only,) = matching_files(str(base / "sub" / ".." / "a.txt"), None, faults.append)
    assert only == ("a.txt", str(base / "a.txt"))


# In a training


def media(journals: Journals) -> list[dict[str, Any]]:
    return [record.value for record in journals.records() if record.type == frames.MEDIA]


def test_a_training_logs_media_and_goes_on(train: Start, journals: Journals, tmp_path: Path) -> None:
    process = train(
        """
        import numpy, os, runvitals
        os.chdir(os.environ["RUNVITALS_DIR"])
        open("model.pt", "w").write("weights")
        class Broken:
            shape = property(lambda self: 1 / 0)
        run = runvitals.init(id="m")
        run.log({"loss": 1.0, "eval": {"sample": runvitals.Image(numpy.zeros((2, 2)))}})
        run.log({"only": [runvitals.Text("a"), runvitals.Text("b")]})
        run.log({"loss": 0.5, "bad": runvitals.Image(Broken()), "": runvitals.Text("x")})
        print(run.step, run.save("*.pt"), [file.name for file in run.files()])
        child = os.fork()
        if not child:
            run.log({"forked": runvitals.Text("c")})
            os._exit(0)
        os.waitpid(child, 0)
        run.finish()
        """
    )
    out, err = succeeded(process)
    assert out.strip() == "3 ['model.pt'] ['model.pt']"
    assert err.count("an image that cannot be recorded (ZeroDivisionError") == 1
    assert [(row["step"], row["data"]) for row in journals.history()] == [
        (0, {"loss": 1.0}),
        (2, {"loss": 0.5}),
    ]
    records = {record["key"]: record for record in media(journals)}
    assert set(records) == {"eval.sample", "only", "bad", "(empty)", "model.pt", "forked"}
    assert [records[key]["step"] for key in ("eval.sample", "only", "bad")] == [0, 1, 2]
    assert "ZeroDivisionError" in records["bad"]["items"][0]["error"]
    folder = str(tmp_path / "runs" / "m")
    for record in records.values():
        for item in record["items"]:
            assert "error" in item or os.path.isfile(paths.content_path(folder, item["sha256"]))
    (saved,) = saved_files(folder)
    assert (saved.name, Path(saved.path or "").read_text()) == ("model.pt", "weights")
    opened = open_run("m", str(tmp_path))
    assert [each.step for each in opened.media("eval.sample")] == [0]
    assert [key.key for key in opened.media_keys()] == ["eval.sample", "only", "bad", "(empty)", "forked"]


def test_a_full_disk_does_not_stop_the_training(train: Start, journals: Journals) -> None:
    process = train(
        """
        import resource, signal, runvitals
        run = runvitals.init(id="m")
        run.log({"loss": 1.0})
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
        run.log({"loss": 0.5, "text": runvitals.Text("x" * 1_000_000)})
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        run.log({"loss": 0.25, "text": runvitals.Text("y")})
        run.finish()
        """
    )
    succeeded(process)
    assert [row["data"]["loss"] for row in journals.history()] == [1.0, 0.5, 0.25]
    first, second = media(journals)
    assert "File too large" in first["items"][0]["error"]
    assert second["items"][0]["bytes"] == 1
    names = [entry.name for entry in (journals.directory / "runs" / "m" / "files").iterdir()]
    assert names == [second["items"][0]["sha256"]]


def test_a_kill_leaves_no_record_without_its_file(train: Start, journals: Journals) -> None:
    process = train(
        """
        import os, runvitals
        run = runvitals.init(id="m")
        print("go", flush=True)
        number = 0
        while True:
            number += 1
            run.log({"text": runvitals.Text(str(number) * 1000)})
            if number == 20:
                print("killed soon", flush=True)
        """
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.readline()
    process.kill()
    process.wait()
    folder = str(journals.directory / "runs" / "m")
    records = [record.value for record in read_run(folder) if record.type == frames.MEDIA]
    assert len(records) >= 20
    for record in records:
        path = paths.content_path(folder, record["items"][0]["sha256"])
        assert hashlib.sha256(Path(path).read_bytes()).hexdigest() == os.path.basename(path)


def test_resuming_continues_after_the_last_step(train: Start, journals: Journals) -> None:
    script = """
        import runvitals
        run = runvitals.init(id="m")
        run.log({"text": runvitals.Text("a")}, step=7)
        run.finish()
        """
    assert finished(train(script))[0] == 0
    code, out, _ = finished(train("import runvitals; print(runvitals.init(id='m', resume='must').step)"))
    assert (code, out.strip()) == (0, "8")
