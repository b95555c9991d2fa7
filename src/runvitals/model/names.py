"""Names of metrics and of facts: which are valid, and what becomes of those that are not."""

from __future__ import annotations

from zlib import crc32

from runvitals.model.limits import NAME_CHARACTERS

STEP = "_step"
"""The column in which a server keeps the step of `log()` rows."""
TRUE_TIME = "_time"
"""The column of the times that rows really had, where two of them had the same one."""
RESERVED = frozenset((STEP, TRUE_TIME))
EMPTY = "(empty)"
"""What stands for the name without a letter."""
_SUM_CHARACTERS = 9  # "~" and eight hexadecimal digits
_KEPT = NAME_CHARACTERS - _SUM_CHARACTERS
_HALVES = dict.fromkeys(range(0xD800, 0xE000), "\N{REPLACEMENT CHARACTER}")


def name_fault(name: str) -> str | None:
    """What is wrong with a metric's name and what is allowed, or None where it is valid.

    Example:
        >>> name_fault("train/loss"), name_fault("")
        (None, 'an empty name')
    """
    if name in RESERVED:
        return f"the name {name!r}, which is reserved"
    return key_fault(name)


def key_fault(name: str) -> str | None:
    """The same of a key within facts, where no name is reserved."""
    if not name:
        return "an empty name"
    if len(name) > NAME_CHARACTERS:
        return f"a name of {len(name)} characters, where {NAME_CHARACTERS} are allowed"
    if "\0" in name or not is_unicode(name):
        return f"the name {plain_text(name)[:60]!r} with a NUL or half a surrogate pair"
    return None


def mended_name(name: str) -> str:
    """A metric's name itself where it is valid, else one that says as much as possible of it.

    Two different long names stay different, by a sum of all their characters. What was mended is valid, so
    mending it again changes nothing.

    Example:
        >>> mended_name(""), mended_name("_step"), mended_name("loss")
        ('(empty)', '_step_', 'loss')
    """
    if name in RESERVED:
        return name + "_"
    return mended_key(name)


def mended_key(name: str) -> str:
    """The same for a key within facts, where no name is reserved."""
    if not name:
        return EMPTY
    name = plain_text(name)
    if len(name) > NAME_CHARACTERS:
        return f"{name[:_KEPT]}~{crc32(name.encode('utf-8')):08x}"
    return name


def plain_text(text: str) -> str:
    """A text as UTF-8 and databases can hold it: NUL and halves of surrogate pairs become signs.

    Example:
        >>> plain_text("caf\\u00e9\\0")
        'café␀'
    """
    return unicode_text(text.replace("\0", "\N{SYMBOL FOR NULL}"))


def shortened(text: str, longest: int) -> str:
    """The beginning of a text, for a copy that is only searched or sorted by."""
    return plain_text(text[:longest])


def is_unicode(text: str) -> bool:
    """Whether a text can be UTF-8: it has no half of a surrogate pair, as Python's texts may."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def unicode_text(text: str) -> str:
    """A text with the replacement character for each half of a surrogate pair."""
    return text if is_unicode(text) else text.translate(_HALVES)
