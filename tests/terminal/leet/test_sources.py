"""The runs of servers and of W&B's files, as leet reads them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.model.errors import UnknownRun
from runvitals.readers.wandb_files import encoding
from runvitals.server.http import cached_read
from runvitals.server.local_app import create_app
from runvitals.terminal.leet.charts import SeriesName
from runvitals.terminal.leet.inspect_screen import InspectApp
from runvitals.terminal.leet.opening import Surroundings, target
from runvitals.terminal.leet.run_data import RunData
from runvitals.terminal.leet.run_table import newest_use
from runvitals.terminal.leet.sources import server as server_source
from runvitals.terminal.leet.sources.run_source import RunSource, now_ms
from runvitals.terminal.leet.sources.server_catalogue import ServerCatalogue
from runvitals.terminal.leet.sources.wandb_catalogue import WandbCatalogue
from tests.readers.journals.journals import T0, Monitor, Trainer
from tests.readers.servers.serving import serving
from tests.readers.wandb_files import files
from tests.server.serving import serving as shared_server

NOW_MS = T0 + 3_005_000


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(cached_read, "FRESH_S", 0.0)
    with serving(create_app(str(tmp_path), lambda: NOW_MS)) as address:
        yield address


def values(source: RunSource, name: SeriesName, x_range: tuple[float, float]) -> list[float]:
    series = source.system([name], x_range)
    return list(series[name].y) if name in series else []


def test_a_run_of_a_server(tmp_path: Path, url: str) -> None:
    nodes = [Monitor(tmp_path, host=host) for host in ("node1", "node2")]
    trainers = [Trainer(tmp_path, host=host, rank=rank) for rank, host in enumerate(("node1", "node2"))]
    for second in range(3000):
        for index, node in enumerate(nodes):
            node.sample(T0 + second * 1000, {"cpu": float(second + index), "disk.in": 2.0 * second})
    for rank, trainer in enumerate(trainers):
        trainer.log(T0, 1, loss=0.5 + rank)
    nodes[0].printed(T0, "hello\n")

    opened = target(f"{url}/runs/abc", Surroundings("/nowhere", "/", None, {}))
    assert opened.run_id == "abc"
    source = opened.catalogue.open("abc")
    with pytest.raises(ValueError, match="keeps no records"):
        InspectApp(source, follows=False)
    data = RunData(source)
    assert data.poll()
    assert data.run is not None
    assert data.run.state == "running"
    assert data.end_ms() == T0 + 2_999_000
    (cpu,) = [chart for chart in data.system_charts() if chart.title == "CPU"]
    assert [line.origin for line in cpu.lines] == ["node1", "node2"]

    whole = data.time_range()
    assert data.system_lines([cpu], whole) == [[]]
    assert data.logged_lines(data.metric_charts(), on_time=False) == [[]]
    assert source.wants_more()
    assert data.poll()
    assert not source.wants_more()
    ((first, last),) = data.system_lines([cpu], whole)
    assert (first.name, last.name) == ("node1", "node2")
    assert 200 < first.series.count < 1001  # buckets
    ((loss, other),) = data.logged_lines(data.metric_charts(), on_time=False)
    assert (loss.name, list(loss.series.x), list(loss.series.y)) == ("rank 0", [1.0], [0.5])
    assert list(other.series.y) == [1.5]
    assert "".join(piece.text for piece in data.console()) == "hello\n"

    window = (data.end_ms() - 60_000, data.end_ms())
    data.system_lines([cpu], window)
    data.poll()  # in detail
    ((first, _),) = data.system_lines([cpu], window)
    assert first.series.count_until(T0 + 2_999_000) - first.series.count_until(T0 + 2_938_999) == 61
    assert not source.wants_more()

    nodes[0].sample(T0 + 3_000_000, {"cpu": 7.5, "disk.in": 6000.0, "fresh": 1.0})
    trainers[0].log(T0 + 3_000_000, 2, loss=0.25, fresh=1.0)
    assert data.poll()
    assert values(source, cpu.lines[0], window)[-1] == 7.5
    assert [list(line.series.y) for line in data.logged_lines([data.metric_charts()[1]], True)[0]] == [
        [0.5, 0.25],
        [1.5],
    ]
    assert [chart.title for chart in data.metric_charts()] == ["fresh", "loss"]
    assert "fresh" in {chart.title for chart in data.system_charts()}
    read = SeriesName("disk.readMBps", "node1", "monitor")
    values(source, read, window)
    data.poll()
    assert values(source, read, window)[-1] == pytest.approx(2.0)
    source.close()
    opened.catalogue.close()


def test_runs_of_a_server_are_filtered_there(tmp_path: Path, url: str) -> None:
    for index in range(3):
        monitor = Monitor(tmp_path, f"run-{index}", start_ms=T0 + index)
        monitor.info(T0, run={"name": f"name-{index}"})
        monitor.end(T0 + 1000, "failed" if index else "finished", exit_code=index)
    catalogue = ServerCatalogue(url, {})
    page, count = catalogue.runs(now_ms(), "state:failed")
    assert ([run.id for run in page], count) == (["run-2", "run-1"], 2)
    around = Surroundings(str(tmp_path / "empty"), str(tmp_path), url, {})
    for filter_text, run_id in (("name-1", "run-1"), ("run-2", "run-2"), (None, None)):
        opened = target(filter_text, around)
        assert opened.run_id == run_id
        opened.catalogue.close()
    catalogue.close()
    with pytest.raises(UnknownRun, match="and none on this machine"):
        target("nothing", around)


def test_a_server_that_wants_a_key(tmp_path: Path) -> None:
    with shared_server(tmp_path, token_required=True) as served:
        catalogue = ServerCatalogue(served.url, {"XDG_CONFIG_HOME": str(tmp_path)})
        source = catalogue.open("abc")
        for read in (lambda: catalogue.runs(now_ms(), ""), source.poll):
            with pytest.raises(OSError, match=f"`runvitals login {served.url}` asks for"):
                read()
        source.close()
        catalogue.close()


def test_too_much_news_reads_everything_again(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor, trainer = Monitor(tmp_path), Trainer(tmp_path)
    monitor.sample(T0, {"cpu": 1.0})
    trainer.log(T0, 1, loss=1.0)
    source = ServerCatalogue(url, {}).open("abc")  # connects at the first request
    cpu = SeriesName("cpu", "node1", "monitor")
    source.poll()
    source.logged_lines("loss")
    values(source, cpu, (T0, T0 + 1))
    source.poll()
    monkeypatch.setattr(server_source, "_POINTS", 10_000)
    for second in range(1, 3500):
        monitor.sample(T0 + second * 1000, {"cpu": 2.0})
    trainer.log(T0 + 1000, 2, loss=2.0)
    source.poll()
    values(source, cpu, (T0, T0 + 1))
    source.poll()
    assert len(values(source, cpu, (T0, T0 + 1))) == 3500
    assert list(source.logged_lines("loss")[0].steps.y) == [1.0, 2.0]
    source.close()


def test_a_wandb_file_that_grows(tmp_path: Path) -> None:
    folder = tmp_path / "wandb" / "run-20231114-abc"
    folder.mkdir(parents=True)
    path = folder / "run-abc.wandb"
    records = [
        files.started(lr=0.1),
        files.stats(0, gpu__0__gpu=1.0, gpu__0__memoryAllocated=2.0),
        files.stats(1, **{"gpu__0__temp": 60.0, "gpu__0__temp/l:node2": 70.0, "gpu__0__gpu/l:node2": 90.0}),
        files.stats(2, gpu__0__gpu=30.0, gpu__0__memoryAllocated=30.0),
        files.stats(2, cpu=5.0),
        files.row(0, 1, {"loss": 0.5}),
        encoding.summary({"loss": 0.5, "_step": 0}),
    ]
    path.write_bytes(files.log(*records))
    opened = target(str(tmp_path), Surroundings(str(tmp_path / "data"), str(tmp_path), None, {}))
    assert isinstance(opened.catalogue, WandbCatalogue)
    assert opened.run_id == "abc"
    (listed,), _ = opened.catalogue.runs(now_ms(), "")
    assert (listed.state, listed.config["lr"], listed.summary) == ("running", 0.1, {"loss": 0.5})
    assert newest_use(listed.last) == "GPU 60% mem 30%"
    source = opened.catalogue.open("abc")
    data = RunData(source)
    data.poll()
    (temperature,) = [chart for chart in data.system_charts() if chart.unit == "°C"]
    assert [line.origin for line in temperature.lines] == ["node1", "node2"]  # W&B's draws one line

    records.append(files.row(1, 2, {"loss": 0.25}))
    whole = files.log(*records)
    path.write_bytes(whole[:-3])  # its last record is being written
    data.poll()
    assert [list(line.series.y) for line in data.logged_lines(data.metric_charts(), False)[0]] == [[0.5]]
    path.write_bytes(whole)
    data.poll()
    assert [list(line.series.y) for line in data.logged_lines(data.metric_charts(), False)[0]] == [
        [0.5, 0.25]
    ]
    # Of a long file, a part is shown before the rest is read.
    records += [files.row(2, 3, {"note": "x" * 300_000}), files.row(3, 4, {"loss": 0.1}), files.ended(3, 10)]
    path.write_bytes(files.log(*records))
    data.poll()
    assert data.run is not None
    assert (data.run.state, data.run.exit_code) == ("failed", 3)
    assert opened.catalogue.runs(now_ms(), "")[0][0].state == "failed"
    long = RunData(opened.catalogue.open("abc"))
    long.poll()
    assert 0.5 < long.progress < 1.0
    assert long.source.wants_more()
    long.poll()
    assert long.run is not None
    assert (long.progress, long.source.wants_more(), long.run.state) == (1.0, False, "failed")
    assert list(long.logged_lines(long.metric_charts(), False)[0][0].series.y) == [0.5, 0.25, 0.1]
    long.source.close()
    kept = Path(source._folder.name)  # type: ignore[attr-defined]
    assert kept.is_dir()
    source.close()
    assert not kept.exists()
