"""Regular expressions that users send, in RE2's syntax.

Matching takes time proportional to the text, whatever the expression is.
"""

from __future__ import annotations

from collections.abc import Callable

MAX_LENGTH = 500
_MAX_MEMORY = 1 << 20


def finder(pattern: str, max_length: int = MAX_LENGTH) -> Callable[[str], bool]:
    """Return a test whether a regular expression is found in a text.

    Args:
        max_length: of expressions that users send the default.

    Raises:
        ValueError: an invalid expression, or one that is too long or too large.

    Example:
        >>> [name for name in ("resnet-50", "vit") if finder("^resnet-[0-9]+$")(name)]
        ['resnet-50']
    """
    import re2  # of the extra `server`

    if len(pattern) > max_length:
        raise ValueError(
            f"the regular expression {pattern[:60]}… is too long; expected at most {max_length} characters"
        )
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    try:
        compiled = re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        raise ValueError(f"invalid regular expression {pattern[:60]!r}: {_text(error)}") from None

    def is_found(text: str) -> bool:
        return compiled.search(text) is not None

    return is_found


def _text(error: Exception) -> str:
    reason = error.args[0] if error.args else ""
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(error)
