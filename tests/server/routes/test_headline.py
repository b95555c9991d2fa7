"""How a run is going, in a few numbers: from journals and from the store."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.server.charts.headline_names import choose_goal, choose_throughput, direction_of, total_of
from runvitals.server.charts.routes.headline import Headline
from runvitals.server.http import cached_read
from tests.readers.journals.journals import T0, Monitor, Trainer
from tests.server.client import Client
from tests.server.stored_runs import StoredServer


@pytest.fixture
def client(client: Client, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr(cached_read, "FRESH_S", 0.0)
    return client


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoredServer]:
    monkeypatch.setattr(cached_read, "FRESH_S", 0.0)
    server = StoredServer(tmp_path / "server")
    yield server
    server.close()


def training(folder: Path) -> None:
    """100 s of a training of 200 steps that steps back by 20 after 50 s; then GPU 1 is idle."""
    monitor = Monitor(folder)
    monitor.info(T0, config={"trainer": {"max_steps": 200}})
    for second in range(100):
        values = {"gpu.0.gpu": 80.0, "gpu.1.gpu": 80.0 if second < 50 else 0.0, "gpu.process.0.gpu": 1.0}
        monitor.sample(T0 + second * 1000, values)
    for pid, began, first in ((1, 0, 0), (2, 50, 30)):
        trainer = Trainer(folder, pid=pid, start_ms=T0 + began * 1000)
        for place in range(50):
            step, time_ms = first + place, T0 + (began + place) * 1000
            values = {"train/loss": 100.0 - step, "tokens_per_second": 5.0}
            if step % 10 == 0:
                values["val/acc"] = math.nan if step == 40 else 0.5 + step / 280.0
            trainer.log(time_ms, step, **values)
    monitor.end(T0 + 100_000)


def test_it_is_the_same_from_journals_and_from_the_store(
    tmp_path: Path, client: Client, stored: StoredServer
) -> None:
    training(tmp_path)
    stored.take(tmp_path)
    mine, theirs = client.ask("runs/abc/headline"), stored.ask("runs/abc/headline")
    Headline.model_validate(mine)
    assert mine == theirs
    goal = mine["goal"]
    assert (goal["name"], goal["goal"], goal["last"]) == ("val/acc", "maximize", 0.75)
    assert (goal["best"], goal["best_step"], len(goal["line"])) == (0.75, 70, 8)
    progress = mine["progress"]
    assert (progress["unit"], progress["value"], progress["total"]) == ("step", 79, 200)
    assert progress["steps_per_second"] == pytest.approx(98 / 99)
    assert progress["eta_ms"] is None
    assert mine["throughput"] == {"name": "tokens_per_second", "last": 5.0, "median": 5.0}
    devices = mine["devices"]
    assert (devices["kind"], devices["count"]) == ("GPU", 2)
    assert devices["mean"] == pytest.approx(60.0, abs=0.5)
    assert devices["idle"] == pytest.approx(25.0, abs=0.5)


def test_a_running_run_has_a_time_that_is_left(tmp_path: Path, client: Client) -> None:
    monitor = Monitor(tmp_path, start_ms=T0)
    monitor.info(T0, config={"num_train_epochs": 10})
    trainer = Trainer(tmp_path)
    for second in range(100):
        monitor.sample(T0 + second * 1000, {"cpu": 1.0})
        trainer.log(T0 + second * 1000, second * 7, loss=1.0, epoch=second / 100)
    client.now_ms = T0 + 99_000
    headline = client.ask("runs/abc/headline")
    progress = headline["progress"]
    assert (progress["unit"], progress["value"], progress["total"]) == ("epoch", 0.99, 10)
    assert progress["eta_ms"] == pytest.approx(901_000, rel=0.01)
    assert headline["goal"]["goal"] == "minimize"
    assert headline["devices"] is None


def test_a_run_without_logged_numbers_says_so(tmp_path: Path, client: Client) -> None:
    Monitor(tmp_path).sample(T0, {"cpu": 1.0})
    headline = client.ask("runs/abc/headline")
    assert headline["logged"] is False
    assert [headline[name] for name in ("goal", "progress", "throughput", "devices")] == [None] * 4


@pytest.mark.parametrize(
    ("names", "goal"),
    [
        (["lr", "train/loss", "eval/loss", "eval/accuracy"], ("eval/loss", "minimize")),
        (["train_acc", "val_acc", "epoch"], ("val_acc", "maximize")),
        (["loss", "lr"], ("loss", "minimize")),
        (["rollout/ep_rew_mean", "rollout/reward"], ("rollout/reward", "maximize")),
        (["validation/perplexity", "lossless_ratio"], ("validation/perplexity", "minimize")),
        (["lr", "evaluate_every", "step_time"], None),
        ([], None),
    ],
)
def test_the_goal_is_what_a_reader_of_the_names_would_choose(
    names: list[str], goal: tuple[str, str] | None
) -> None:
    assert choose_goal(names, {}) == goal


def test_a_goal_that_the_run_defined_comes_first() -> None:
    names = ["val/loss", "my/number", "your/number"]
    assert choose_goal(names, {"my/*": {"goal": "maximize"}}) == ("my/number", "maximize")
    assert choose_goal(names, {"none": {"goal": "maximize"}}) == ("val/loss", "minimize")
    assert direction_of("my/number") is None


@pytest.mark.parametrize(
    ("names", "throughput"),
    [
        (["perf/tokens_per_second", "perf/steps_per_second"], "perf/tokens_per_second"),
        (["train/samples/s", "loss"], "train/samples/s"),
        (["it/s"], "it/s"),
        (["steps", "tokens_seen", "passes"], None),
    ],
)
def test_the_throughput(names: list[str], throughput: str | None) -> None:
    assert choose_throughput(names) == throughput


def test_totals_of_a_configuration() -> None:
    assert total_of({"max_steps": -1, "args": {"num_iters": 5000}}, "step") == 5000.0
    assert total_of({"epochs": 3, "steps": True}, "step") is None
    assert total_of({"model": {"steps": "10"}, "num-train-epochs": 3}, "epoch") == 3.0
