from __future__ import annotations

import json

import pytest

from runvitals.relay.destinations.cloudwatch.json_documents import JsonDocuments


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_one_document_per_line_in_any_chunks(size: int) -> None:
    documents = JsonDocuments()
    text = b'{"a":1}\r\n\n{"b":2}\n{"c":3}'
    parsed = [document for i in range(0, len(text), size) for document in documents.feed(text[i : i + size])]
    parsed += documents.end()
    assert parsed == [b'{"a":1}', b'{"b":2}', b'{"c":3}']
    assert documents.malformed == 0


def test_document_over_several_lines() -> None:
    documents = JsonDocuments()
    text = json.dumps({"a": {"b": [1, 2]}}, indent=2).encode()
    assert [json.loads(document) for document in [*documents.feed(text), *documents.end()]] == [
        {"a": {"b": [1, 2]}}
    ]


def test_incomplete_document_does_not_affect_the_next() -> None:
    documents = JsonDocuments()
    assert list(documents.feed(b'{\n  "a": 1,\n{"b":2}\n{\n')) == [b'{"b":2}']
    assert list(documents.end()) == []
    assert documents.malformed == 2


def test_skips_a_line_that_is_too_long() -> None:
    documents = JsonDocuments(longest_bytes=100)
    for _ in range(1000):
        assert list(documents.feed(b"x" * 1000)) == []
    assert list(documents.feed(b'x\n{"a":1}\n')) == [b'{"a":1}']
    assert documents.malformed == 1
