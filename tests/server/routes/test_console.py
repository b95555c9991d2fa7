"""Console output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runvitals.server.runs.routes import output_models
from tests.readers.journals.journals import T0, Monitor, Trainer
from tests.server.client import Client


def test_console_output(tmp_path: Path, client: Client) -> None:
    monitor = Monitor(tmp_path)
    monitor.printed(T0, "<script>alert(1)</script>\n")
    monitor.printed(T0 + 1, b"\xff\n", stream=2)
    lines = client.ask("runs/abc/console")
    output_models.ConsoleAnswer.model_validate(lines)
    assert [(piece["stream"], piece["text"]) for piece in lines["pieces"]] == [
        ("stdout", "<script>alert(1)</script>\n"), ("stderr", "�\n"),
    ]  # fmt: skip
    assert not lines["cut"]


def test_more_output_than_the_page_shows(tmp_path: Path, client: Client) -> None:
    monitor = Monitor(tmp_path)
    for number in range(6):
        monitor.printed(T0 + number, f"{number}" * 100_000)

    def printed(max_bytes: int | None = None) -> tuple[bool, str]:
        output = client.ask("runs/abc/console", **({} if max_bytes is None else {"max_bytes": max_bytes}))
        return output["cut"], "".join(piece["text"][0] for piece in output["pieces"])

    assert printed() == (True, "45")
    assert printed(1_000_000) == (False, "012345")
    assert printed(350_000) == (True, "345")
    assert printed(1) == (True, "5")
    assert client.get("/api/v1/runs/abc/console", params={"max_bytes": 17 << 20}).status_code == 422


def many_lines(folder: Path) -> None:
    """500 lines of two ranks, a traceback, and lines whose parts are printed one by one."""
    for rank in (0, 1):
        trainer = Trainer(folder, pid=rank + 1, rank=rank)
        for number in range(500):
            trainer.printed(T0 + 1000 * number + rank, f"step {number} of rank {rank}\n")
    trainer.printed(T0 + 600_000, "Traceback (most recent call last):\n", stream=2)
    trainer.printed(T0 + 600_001, "  File 'a.py', line 1\nValueError: a ")
    trainer.printed(T0 + 600_002, "\x1b[31mbad\x1b[0m value\nend")


def matching(client: Client, **params: Any) -> dict[str, Any]:
    answer: dict[str, Any] = client.ask("runs/abc/console/matches", **params)
    output_models.ConsoleMatchesAnswer.model_validate(answer)
    return answer


def test_a_search_finds_lines_with_those_around_them(tmp_path: Path, client: Client) -> None:
    many_lines(tmp_path)
    (match,) = matching(client, words="STEP 250 of rank 1", context=2)["matches"]
    assert (match["text"], match["number"], match["rank"]) == ("step 250 of rank 1", 250, 1)
    assert match["time_ms"] == T0 + 250_001
    assert match["before"] == ["step 248 of rank 1", "step 249 of rank 1"]
    assert match["after"] == ["step 251 of rank 1", "step 252 of rank 1"]
    (coloured,) = matching(client, words="a bad value", context=1)["matches"]
    assert (coloured["text"], coloured["time_ms"]) == ("ValueError: a bad value", T0 + 600_001)
    assert coloured["after"] == ["end"]


def test_a_search_by_expression_counts_all_and_pages_from_the_newest(tmp_path: Path, client: Client) -> None:
    many_lines(tmp_path)
    found = matching(client, regex=r"^step \d*7 of rank 0$", limit=30)
    assert (found["total"], len(found["matches"]), found["complete"]) == (50, 30, True)
    assert found["matches"][0]["number"] == 497
    rest = matching(client, regex=r"^step \d*7 of rank 0$", limit=30, after=found["next"])
    assert [match["number"] for match in rest["matches"]] == list(range(197, 0, -10))
    assert (rest["total"], rest["next"]) == (50, None)


def test_errors_are_found_as_those_that_ended_a_run_are(tmp_path: Path, client: Client) -> None:
    many_lines(tmp_path)
    monitor = Monitor(tmp_path)
    for number, text in enumerate(
        [
            "RuntimeError: CUDA error: out of memory",
            "node1: NCCL WARN Timeout",
            "2026-11-29 ERROR disk",
            "0 errors, no error at all",
            "error: cannot open x",
            '{"level": "critical", "message": "x"}',
            "Fatal Python error: Segmentation fault",
        ]
    ):
        monitor.printed(T0 + number, f"{text}\n")
    texts = [match["text"] for match in matching(client, errors=True)["matches"]]
    assert texts[0].startswith("Traceback")
    assert len(texts) == 7
    assert "0 errors, no error at all" not in texts


@pytest.mark.parametrize(
    "params",
    [{}, {"words": "a", "errors": True}, {"regex": "("}, {"words": "a", "after": "x"}, {"regex": "a" * 501}],
)
def test_a_search_that_is_invalid_is_refused(client: Client, tmp_path: Path, params: dict[str, Any]) -> None:
    Monitor(tmp_path)
    assert client.get("/api/v1/runs/abc/console/matches", params=params).status_code == 422


def test_an_evil_expression_takes_no_longer_than_others(tmp_path: Path, client: Client) -> None:
    monitor = Monitor(tmp_path)
    monitor.printed(T0, "a" * 100_000 + "\n")
    assert matching(client, regex="(a+)+(a+)+$b")["total"] == 0


def test_output_around_a_time(tmp_path: Path, client: Client) -> None:
    many_lines(tmp_path)
    around = client.ask("runs/abc/console", around_ms=T0 + 250_000, max_bytes=400)
    lines = "".join(piece["text"] for piece in around["pieces"]).splitlines()
    assert "step 249 of rank 0" in lines
    assert "step 250 of rank 1" in lines
    assert 15 < len(lines) < 25
    assert (around["cut"], around["more"]) == (True, True)
