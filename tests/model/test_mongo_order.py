"""Orders of `wandb.Api().runs()` as our own."""

from __future__ import annotations

import pytest

from runvitals.model.mongo_fields import BadFilter
from runvitals.model.mongo_order import parse_order


@pytest.mark.parametrize(
    ("text", "by", "descending"),
    [
        (None, "started_ms", False),
        ("+created_at", "started_ms", False),
        ("-created_at", "started_ms", True),
        ("heartbeat_at", "last_ms", False),
        ("-summary_metrics.loss", "summary.loss", True),
        ("config.lr.value", "config.lr", False),
        ("-config.opt.name", "config.opt.name", True),
        ("display_name", "name", False),
        ("-user", "author", True),
        ("-summary_metrics._timestamp", "last_ms", True),
        ("-summary_metrics._step", "summary._step", True),
    ],
)
def test_orders(text: str | None, by: str, descending: bool) -> None:
    assert (parse_order(text).by, parse_order(text).descending) == (by, descending)


@pytest.mark.parametrize("text", ["-password", "-created_at,password", "--created_at", ","])
def test_an_order_that_there_is_not(text: str) -> None:
    with pytest.raises(BadFilter, match="cannot order runs by"):
        parse_order(text)


def test_orders_of_several_fields() -> None:
    parts = parse_order("-config.lr, +created_at,name").parts
    assert [(part.by, part.descending) for part in parts] == [
        ("config.lr", True),
        ("started_ms", False),
        ("id", False),
    ]
    assert parse_order("config.a,b").by == "config.a,b"
    with pytest.raises(BadFilter, match="at most 4"):
        parse_order("name,group,state,user,duration")
