from __future__ import annotations

from tests.conftest import reason_in_brief


def test_of_a_failed_assertion_it_is_the_message_and_the_place() -> None:
    text = (
        "def test():\n>   assert 503 < 500, '/readyz'\nE   AssertionError: /readyz\nE   assert 503 < 500\n\n"
    )
    brief = "AssertionError: /readyz / assert 503 < 500 / tests/test_x.py:3: AssertionError"
    assert reason_in_brief(text + "tests/test_x.py:3: AssertionError") == brief


def test_of_warnings_in_a_group_it_is_what_was_left_open() -> None:
    text = "  | ExceptionGroup: two\n    | ResourceWarning: unclosed <socket.socket fd=13>\n"
    assert "unclosed <socket.socket fd=13>" in reason_in_brief(text)
