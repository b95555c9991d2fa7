from hypothesis import given
from hypothesis import strategies as st

from runvitals.model.limits import NAME_CHARACTERS
from runvitals.model.names import mended_key, mended_name, name_fault, plain_text

any_text = st.text(st.characters(exclude_categories=()), max_size=20) | st.builds(
    lambda text, times: text * times, st.text(st.characters(exclude_categories=()), min_size=1), st.just(600)
)


def test_a_valid_name_stays() -> None:
    assert mended_name("train/loss (ü)") == "train/loss (ü)"
    assert mended_name("n" * NAME_CHARACTERS) == "n" * NAME_CHARACTERS


def test_a_name_that_breaks_a_rule_says_as_much_as_possible() -> None:
    assert mended_name("") == "(empty)"
    assert mended_name("_time") == "_time_"
    assert mended_key("_time") == "_time"
    assert mended_name("a\0b\ud800") == "a␀b�"
    assert mended_name("n" * 600).startswith("n" * 500)


def test_different_long_names_stay_different() -> None:
    assert mended_name("n" * 600 + "1") != mended_name("n" * 600 + "2")


@given(any_text)
def test_what_was_mended_is_valid_and_stays(name: str) -> None:
    mended = mended_name(name)
    assert name_fault(mended) is None
    assert mended_name(mended) == mended
    assert (mended == name) == (name_fault(name) is None)
    mended.encode("utf-8")


@given(any_text)
def test_plain_text_can_be_utf_8(text: str) -> None:
    assert "\0" not in plain_text(text)
    plain_text(text).encode("utf-8")
