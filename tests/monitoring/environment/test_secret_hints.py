"""The quick test for secrets says yes wherever redaction would change something."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.monitoring.environment import redaction
from runvitals.monitoring.environment.secret_hints import may_hold_secret

_HERE = Path(__file__).parent


def lines_of_tests() -> Iterator[str]:
    """Every line in the texts of the tests beside this one, which have secrets of all kinds."""
    for path in sorted(_HERE.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 3000:
                yield from node.value.split("\n")


def test_all_secrets_that_redaction_knows_are_suspected() -> None:
    secret = [line for line in lines_of_tests() if redaction.text(line) != line]
    assert len(secret) > 100
    assert [line for line in secret if not may_hold_secret(line)] == []


@pytest.mark.parametrize(
    "line",
    [
        "epoch 3 loss 0.2512 acc 0.91",
        "  47%|████████▏         | 234/500 [00:12<00:14, 18.9it/s]",
        "step 1000: loss -0.25, lr 1e-4",
        "Saving the model ...",
        "-------------------------------",
    ],
)
def test_ordinary_lines_need_no_redaction(line: str) -> None:
    assert not may_hold_secret(line)


_WORDS = st.sampled_from(
    ["password", "TOKEN", "=", ":", " ", "hf_", "sk-", "abcdefgh12345678", "AKIA", "://", "@"]
)


@given(st.lists(_WORDS | st.text(max_size=8), max_size=8).map("".join))
def test_it_never_misses_what_redaction_finds(line: str) -> None:
    if redaction.text(line) != line:
        assert may_hold_secret(line)
