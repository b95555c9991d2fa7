"""Filters of registries, collections and versions."""

from __future__ import annotations

import json

import pytest

from runvitals.model.mongo_fields import BadFilter
from runvitals.server.doors.wandb import registry_filters as conditions
from runvitals.server.doors.wandb.artifact_lists import order_name
from runvitals.server.doors.wandb.executor import InvalidArgument
from runvitals.server.doors.wandb.registry_filters import compile_filter

FIELDS = {
    "name": conditions.text,
    "tag": conditions.text,
    "version": conditions.version,
    "metadata": conditions.scalar,
    "created_at": conditions.time,
}
ROW = {
    "name": "mnist",
    "tag": ("old", "kept"),
    "version": 3,
    "metadata": {"acc": 0.9, "net": {"layers": 2}, "good": True},
    "created_at": 1_760_000_000_000,
}


@pytest.mark.parametrize(
    ("expected", "holds"),
    [
        ({}, True),
        ({"name": "mnist"}, True),
        ({"name": {"$ne": "mnist"}}, False),
        ({"name": {"$regex": "^m.*t$"}}, True),
        ({"name": {"$contains": "nis"}}, True),
        ({"name": {"$not": {"$in": ["a", "b"]}}}, True),
        ({"tag": "kept"}, True),
        ({"tag": {"$nin": ["old"]}}, False),
        ({"tag": {"$exists": False}}, False),
        ({"version": {"$in": ["v3", 4]}}, True),
        ({"version": {"$gte": 4}}, False),
        ({"metadata.acc": {"$gt": 0.5, "$lt": 1}}, True),
        ({"metadata.net.layers": 2.0}, True),
        ({"metadata.good": 1}, False),
        ({"metadata.missing": None}, True),
        ({"metadata.acc.deeper": {"$exists": True}}, False),
        ({"created_at": {"$gte": "2025-10-09T08:53:20Z"}}, True),
        ({"$or": [{"name": "x"}, {"$and": [{"tag": "old"}, {"version": 3}]}]}, True),
        ({"$nor": [{"name": "x"}, {"tag": "old"}]}, False),
        ({"$not": {"name": "x"}}, True),
    ],
)
def test_which_rows_a_filter_selects(expected: object, holds: bool) -> None:
    assert compile_filter(json.dumps(expected), FIELDS)(ROW) is holds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "invalid condition"),
        ("{", "not JSON"),
        ('{"owner": 1}', "unknown field 'owner'; expected one of created_at, metadata, name, tag, version"),
        ('{"name": 1}', "name: expected a text"),
        ('{"name": {"$where": "1"}}', "name: unknown operator '$where'"),
        ('{"name": {"$regex": "(a"}}', "name: "),
        ('{"version": "newest"}', "version: expected an integer"),
        ('{"created_at": "soon"}', "invalid time"),
        (json.dumps({"name": {"$in": ["x"] * 300}}), "too many conditions"),
        ('{"$not":' * 30 + "{}" + "}" * 30, "nested too deeply"),
        ("[" * 5000, "nested too deeply"),
        (" " * 200_000, "200,000 characters"),
    ],
)
def test_what_is_wrong_with_a_filter(text: str, message: str) -> None:
    with pytest.raises(BadFilter, match=message.replace("(", r"\(").replace("$", r"\$")):
        compile_filter(text, FIELDS)


def test_an_order_has_one_direction() -> None:
    assert [order_name(order, ["created_at"]) for order in ("createdAt", "-created_at")] == ["created_at"] * 2
    for order in ("--created_at", "+-created_at", "-", "name"):
        with pytest.raises(InvalidArgument, match="cannot sort by"):
            order_name(order, ["created_at"])
