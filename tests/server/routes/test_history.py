"""Logged values by step."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from runvitals.server.runs.routes import logged_models
from tests.readers.journals.journals import T0, Trainer
from tests.server.client import Client


def test_logged_values_by_rank(tmp_path: Path, client: Client) -> None:
    first, second = Trainer(tmp_path, rank=0), Trainer(tmp_path, pid=4712, rank=1)
    for step in range(3):
        first.log(
            T0 + step, step, loss=1.0 / (step + 1), text="no number", **({"eval": 0.5} if step == 2 else {})
        )
    second.log(T0, 7, loss=math.nan)
    history = client.ask("runs/abc/history")
    logged_models.Logged.model_validate(history)
    assert [(group["rank"], group["step"], group["series"]) for group in history["groups"]] == [
        (0, [0.0, 1.0, 2.0], {"loss": [1.0, 0.5, 1 / 3]}),
        (0, [2.0], {"eval": [0.5]}),
        (1, [7.0], {"loss": [None]}),
    ]
    texts = [(other["rank"], other["key"], other["step"], other["value"]) for other in history["others"]]
    assert texts == [(0, "text", float(step), "no number") for step in range(3)]
    assert client.ask("runs/abc/history/names", of="others") == ["text"]
    (group,) = client.ask("runs/abc/history", keys="eval")["groups"]
    assert group["series"] == {"eval": [0.5]}


def test_keys_may_be_globs_and_those_without_a_match_are_named(tmp_path: Path, client: Client) -> None:
    Trainer(tmp_path).log(T0, 0, **{"val/loss": 1.0, "val/acc": 2.0, "odd[1]": 3.0})

    def names(*keys: str) -> tuple[list[str], list[str]]:
        response = client.ask("runs/abc/history", keys=list(keys))
        return sorted(name for group in response["groups"] for name in group["series"]), response["unmatched"]

    assert names("*") == (["odd[1]", "val/acc", "val/loss"], [])
    assert names("val/*", "nothing", "x*") == (["val/acc", "val/loss"], ["nothing", "x*"])
    assert names("odd[1]") == (["odd[1]"], [])
    assert names("nothing") == ([], ["nothing"])
    assert client.get("/api/v1/runs/abc/history?format=csv&keys=val/*").text.startswith(
        "step,t,host,rank,val/loss,val/acc"
    )


def test_decimal_steps_are_not_rounded_to_whole_ones(tmp_path: Path, client: Client) -> None:
    trainer = Trainer(tmp_path)
    for row in range(100):
        trainer.log(T0 + row * 10, row / 100, loss=float(row))
    (group,) = client.ask("runs/abc/history", max_points=10)["groups"]
    assert group["step"] == pytest.approx([0, 0.2, 0.4, 0.6, 0.8])
    assert group["n"] == [20] * 5
    (line,) = client.ask("overlay/logged", runs="abc", keys="loss", points=25)["keys"][0]["groups"]
    assert len(line["x"]) == 20


def test_many_logged_rows_are_returned_as_buckets_of_steps(tmp_path: Path, client: Client) -> None:
    trainer = Trainer(tmp_path)
    for step in range(100):
        trainer.log(T0 + step * 10, step, loss=float(step))
    (group,) = client.ask("runs/abc/history", max_points=10)["groups"]
    assert group["step"] == [float(step) for step in range(0, 100, 10)]
    assert group["t"][0] == T0 + 90
    assert (group["min"]["loss"][1], group["series"]["loss"][1], group["max"]["loss"][1]) == (
        10.0,
        14.5,
        19.0,
    )


def test_buckets_of_steps_along_a_logarithmic_axis(tmp_path: Path, client: Client) -> None:
    trainer = Trainer(tmp_path)
    for step in range(20_000):
        trainer.log(T0 + step, step, loss=70.0 if step == 15_000 else 1.0)
    (group,) = client.ask("runs/abc/history", max_points=50, scale="log")["groups"]
    assert group["step"][0] == 1.0
    assert sum(group["n"]) == 19_999  # the first step is not positive
    for low in (100, 1000):
        assert sum(low <= step < 10 * low for step in group["step"]) >= 20
    place = group["max"]["loss"].index(70.0)
    assert group["step"][place] <= 15_000 < group["step"][place + 1]
    assert group["t"][place] == T0 + group["step"][place + 1] - 1  # the newest of the bucket


def test_logged_rows_at_full_resolution(
    tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = Trainer(tmp_path)
    for step in range(100):
        trainer.log(T0 + step * 10, step, loss=float(step))
    (group,) = client.ask("runs/abc/history", max_points=10, resolution="raw")["groups"]
    assert (group["n"], group["series"]["loss"]) == (None, [float(step) for step in range(100)])
    monkeypatch.setattr("runvitals.server.charts.series.MAX_RAW_VALUES", 99)
    response = client.get("/api/v1/runs/abc/history?resolution=raw")
    assert response.status_code == 422
    assert "100 values were logged; a response holds at most 99: request fewer" in response.json()["error"]
    client.ask("runs/abc/history")


def test_names_are_listed_and_searched(
    tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rank in (0, 1):
        Trainer(tmp_path, pid=4711 + rank, rank=rank).log(T0, 0, loss=1.0, **{f"rank{rank}/Loss": 1.0})
    assert client.ask("runs/abc/history/names") == ["loss", "rank0/Loss", "rank1/Loss"]
    assert client.ask("runs/abc/history/names", keys=["*/[lL]oss", "none"]) == ["rank0/Loss", "rank1/Loss"]
    monkeypatch.setattr("runvitals.server.charts.routes.history.NAMES_PER_RESPONSE", 2)
    assert client.ask("runs/abc/history/names") == ["loss", "rank0/Loss"]
    assert client.ask("runs/abc/history/names", skip=2) == ["rank1/Loss"]
    assert client.get("/api/v1/runs/none/history/names").status_code == 404


def test_a_range_of_steps(tmp_path: Path, client: Client) -> None:
    first, second = Trainer(tmp_path, rank=0), Trainer(tmp_path, pid=4712, rank=1)
    for step in range(1000):
        first.log(T0 + step, step, loss=float(step))
    second.log(T0, 5000, loss=1.0)
    groups = client.ask("runs/abc/history", first_step=100, last_step=105.5, max_points=10)["groups"]
    assert [(group["step"], group["n"]) for group in groups] == [([100.0, 101, 102, 103, 104, 105], None)]
    (group,) = client.ask("runs/abc/history", first_step=900, max_points=10, rank=0)["groups"]
    assert (group["step"][0], group["n"]) == (900.0, [10] * 10)
    assert client.ask("runs/abc/history", first_step=6000)["groups"] == []
    csv = client.get("/api/v1/runs/abc/history?format=csv&first_step=998&last_step=998").text
    assert csv.splitlines()[1:] == [f"998.0,{T0 + 998},node1,0,998.0"]
    assert client.get("/api/v1/runs/abc/history?first_step=nan").status_code == 422


def stepping_back(folder: Path, last: int = 700) -> None:
    """A training of 500 steps that goes back to step 400, in the same process; each step logs its number."""
    trainer = Trainer(folder)
    for row, step in enumerate([*range(500), *range(400, last)]):
        trainer.log(T0 + row * 1000, step, loss=float(row))


@pytest.mark.parametrize("max_points", [1000, 50])
def test_a_later_attempt_replaces_the_steps_that_it_went_back(tmp_path: Path, max_points: int) -> None:
    stepping_back(tmp_path)
    answer = Client(tmp_path).ask("runs/abc/history", keys="loss", max_points=max_points)
    newest, replaced = sorted(answer["groups"], key=lambda group: group["replaced"])
    assert newest["step"] == sorted(newest["step"])
    assert newest["t"] == sorted(newest["t"])
    rows = [step if step < 400 else step + 100 for step in range(700)]
    values = zip(newest["step"], newest["series"]["loss"], strict=True)
    assert max(abs(value - rows[int(step)]) for step, value in values) < 20
    assert replaced["step"][0] == 400
    assert 480 <= replaced["step"][-1] < 500
    assert sum(replaced["n"] or [1] * len(replaced["step"])) == 100
    resume = {"after_t": T0 + 499_000, "after_step": 499, "t": T0 + 500_000, "step": 400}
    assert answer["resumes"] == [resume]


def test_raw_values_have_all_attempts(tmp_path: Path) -> None:
    stepping_back(tmp_path)
    answer = Client(tmp_path).ask("runs/abc/history", keys="loss", resolution="raw")
    assert sum(len(group["step"]) for group in answer["groups"]) == 800


def test_a_zoom_shows_the_newest_attempt_only(tmp_path: Path) -> None:
    stepping_back(tmp_path, last=450)
    answer = Client(tmp_path).ask("runs/abc/history", keys="loss", first_step=440, last_step=480)
    newest, replaced = sorted(answer["groups"], key=lambda group: group["replaced"])
    assert newest["step"] == list(range(440, 450))
    assert replaced["step"] == list(range(440, 481))


def test_values_that_come_in_no_order_replace_none(tmp_path: Path) -> None:
    trainer = Trainer(tmp_path)
    steps = [(47 * i) % 101 for i in range(101)]
    for row, step in enumerate(steps):
        trainer.log(T0 + row * 1000, step, loss=float(step))
    (group,) = Client(tmp_path).ask("runs/abc/history", keys="loss")["groups"]
    assert group["step"] == list(range(101))


def test_processes_of_one_host_that_log_at_once_replace_none(tmp_path: Path) -> None:
    for pid in (1, 2):
        trainer = Trainer(tmp_path, pid=pid, start_ms=T0 + pid)
        for step in range(10):
            trainer.log(T0 + step * 1000 + pid, step, loss=float(pid))
    answer = Client(tmp_path).ask("runs/abc/history", keys="loss")
    assert sum(len(group["step"]) for group in answer["groups"]) == 20
    assert answer["resumes"] == []


def test_one_restart_of_many_ranks_and_names_is_one(tmp_path: Path) -> None:
    for rank in range(4):
        for attempt, first in enumerate((0, 90)):
            begun = T0 + attempt * 200_000 + rank
            trainer = Trainer(tmp_path, pid=10 * attempt + rank, rank=rank, start_ms=begun)
            for i in range(100):
                more = {"val": 1.0} if (first + i) % 20 == 0 else {}
                trainer.log(begun + i * 1000, first + i, loss=1.0, **more)
    (resume,) = Client(tmp_path).ask("runs/abc/history", keys=["loss", "val"])["resumes"]
    assert (resume["step"], resume["after_step"]) == (90, 99)
