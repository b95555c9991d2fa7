"""Names of metrics and facts: which are valid, and what invalid ones are replaced by."""

from __future__ import annotations

from zlib import crc32

from runvitals.base.unicode import is_unicode, unicode_text
from runvitals.model.limits import LABEL_CHARACTERS, NAME_CHARACTERS

STEP = "_step"
"""The column in which the server stores the step of `log()` rows."""
TRUE_TIME = "_time"
"""The column of the original times of rows that had the same time as another row."""
RESERVED = frozenset((STEP, TRUE_TIME))
EMPTY = "(empty)"
"""Replaces the empty name."""
_CHECKSUM_CHARACTERS = 9  # "~" and eight hexadecimal digits
_KEPT = NAME_CHARACTERS - _CHECKSUM_CHARACTERS


def name_fault(name: str) -> str | None:
    """Return why a metric's name is invalid and what is allowed; None if it is valid.

    Example:
        >>> name_fault("train/loss"), name_fault("")
        (None, 'an empty name')
    """
    if name in RESERVED:
        return f"the name {name!r}, which is reserved"
    return key_fault(name)


def key_fault(name: str) -> str | None:
    """Return the same for a key in facts, where no name is reserved."""
    if not name:
        return "an empty name"
    if len(name) > NAME_CHARACTERS:
        return f"a name of {len(name)} characters, where {NAME_CHARACTERS} are allowed"
    if "\0" in name or not is_unicode(name):
        return f"the name {plain_text(name)[:60]!r} with a NUL or a lone surrogate"
    return None


def sanitized_name(name: str) -> str:
    """Return a metric's name if it is valid, else a valid name as close to it as possible.

    Different long names stay different: the new name ends in a checksum of the whole one. Sanitizing a
    sanitized name changes nothing.

    Example:
        >>> sanitized_name(""), sanitized_name("_step"), sanitized_name("loss")
        ('(empty)', '_step_', 'loss')
    """
    if name in RESERVED:
        return name + "_"
    return sanitized_key(name)


def sanitized_key(name: str) -> str:
    """Return the same for a key in facts, where no name is reserved."""
    if not name:
        return EMPTY
    name = plain_text(name)
    if len(name) > NAME_CHARACTERS:
        return f"{name[:_KEPT]}~{crc32(name.encode('utf-8')):08x}"
    return name


def plain_text(text: str) -> str:
    r"""Return a text that UTF-8 and databases can represent: NUL and lone surrogates are replaced.

    Example:
        >>> plain_text("caf\u00e9\0")
        'café␀'
    """
    return unicode_text(text.replace("\0", "\N{SYMBOL FOR NULL}"))


def shorten(text: str, longest: int) -> str:
    """Return the beginning of a text, for a copy that is only used to search or sort."""
    return plain_text(text[:longest])


DEFAULT_PROJECT = "default"
PROJECT_NAME_ALLOWED = "a name without / \\, control or invisible characters that is not ., .. or -"


def project_name(text: object) -> str:
    """Return the project name given by a writer, shortened if it is too long; `default` if it gives none."""
    return shorten(str(text), LABEL_CHARACTERS) if text else DEFAULT_PROJECT


def can_be_addressed(project: str) -> bool:
    """Return whether a project of this name can have an address.

    Browsers change paths with . and .., and `-` begins the pages of settings.

    Example:
        >>> can_be_addressed("digits"), can_be_addressed(".."), can_be_addressed("a/b")
        (True, False, False)
    """
    is_plain = not any(letter in "/\\" for letter in project) and not has_control_characters(project)
    return is_plain and project not in (".", "..", "-")


def can_be_created(project: str) -> bool:
    r"""Return whether a new project can have this name: one with hidden characters could pass for another.

    Example:
        >>> can_be_created("digits"), can_be_created("dig\u200bits")
        (True, False)
    """
    from runvitals.model.hidden_characters import has_hidden_characters  # 1 MB that trainings do not need

    return can_be_addressed(project) and not has_hidden_characters(project)


def has_control_characters(text: str) -> bool:
    r"""Return whether a text has characters that control a terminal, those above ASCII among them.

    Example:
        >>> has_control_characters("café"), has_control_characters("a\x1b"), has_control_characters("a\x85")
        (False, True, True)
    """
    return any(letter < " " or "\x7f" <= letter <= "\x9f" for letter in text)
