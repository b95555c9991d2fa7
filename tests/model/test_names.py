from hypothesis import given
from hypothesis import strategies as st

from runvitals.model.limits import NAME_CHARACTERS
from runvitals.model.names import name_fault, plain_text, sanitized_key, sanitized_name

any_text = st.text(st.characters(exclude_categories=()), max_size=20) | st.builds(
    lambda text, times: text * times, st.text(st.characters(exclude_categories=()), min_size=1), st.just(600)
)


def test_a_valid_name_is_unchanged() -> None:
    assert sanitized_name("train/loss (ü)") == "train/loss (ü)"
    assert sanitized_name("n" * NAME_CHARACTERS) == "n" * NAME_CHARACTERS


def test_an_invalid_name_is_changed_as_little_as_possible() -> None:
    assert sanitized_name("") == "(empty)"
    assert sanitized_name("_time") == "_time_"
    assert sanitized_key("_time") == "_time"
    assert sanitized_name("a\0b\ud800") == "a␀b�"
    assert sanitized_name("n" * 600).startswith("n" * 500)


def test_different_long_names_stay_different() -> None:
    assert sanitized_name("n" * 600 + "1") != sanitized_name("n" * 600 + "2")


@given(any_text)
def test_a_sanitized_name_is_valid_and_unchanged(name: str) -> None:
    sanitized = sanitized_name(name)
    assert name_fault(sanitized) is None
    assert sanitized_name(sanitized) == sanitized
    assert (sanitized == name) == (name_fault(name) is None)
    sanitized.encode("utf-8")


@given(any_text)
def test_plain_text_can_be_encoded_as_utf_8(text: str) -> None:
    assert "\0" not in plain_text(text)
    plain_text(text).encode("utf-8")
