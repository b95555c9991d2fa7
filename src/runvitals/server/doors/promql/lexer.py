"""Splits PromQL expressions into tokens."""

from __future__ import annotations

import ast
import re
from typing import Final, NamedTuple

from runvitals.server.doors.promql.syntax import QueryError

MAX_CHARACTERS: Final = 20_000
_MAX_DURATION_MS: Final = 10**13
"""About 300 years, as in Prometheus."""
_MAX_DURATION_CHARACTERS: Final = 50
_DURATION = r"(?:[0-9]+(?:ms|[smhdwy]))+"
_PATTERNS: Final = (
    ("space", r"(?:\s|#[^\n]*)+"),
    ("duration", _DURATION),
    ("number", r"0x[0-9a-fA-F]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"),
    ("name", r"[a-zA-Z_:][a-zA-Z0-9_:]*"),
    ("text", r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|`[^`]*`'),
    ("symbol", r"=~|!~|==|!=|<=|>=|[-+*/%^=<>(){}\[\],:@]"),
)
_TOKEN = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _PATTERNS))
_PART = re.compile(r"([0-9]+)(ms|[smhdwy])")
_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000,
              "y": 31_536_000_000}  # fmt: skip


class Lexeme(NamedTuple):
    """A token; `kind` is one of `_PATTERNS`, or "end"."""

    kind: str
    text: str
    at: int


def tokens(query: str) -> list[Lexeme]:
    """Return the tokens of a query, without space and comments.

    Raises:
        QueryError: a character that no token begins with.
    """
    if len(query) > MAX_CHARACTERS:
        raise QueryError(f"the query has {len(query)} characters; at most {MAX_CHARACTERS} are allowed")
    lexemes, at = [], 0
    while at < len(query):
        match = _TOKEN.match(query, at)
        if match is None:
            raise QueryError(f"1:{at + 1}: parse error: unexpected character: {query[at]!r}")
        kind = match.lastgroup or ""
        if kind != "space":
            lexemes.append(Lexeme(kind, match[0], at))
        at = match.end()
    return [*lexemes, Lexeme("end", "", at)]


def duration_ms(text: str) -> int:
    """Return a duration such as `1h30m` in ms, or raise QueryError."""
    if len(text) > _MAX_DURATION_CHARACTERS or re.fullmatch(_DURATION, text) is None:
        raise QueryError(f"invalid duration {text[:50]!r}; expected for example 5m or 1h30m")
    return checked_duration(sum(int(count) * _MS[unit] for count, unit in _PART.findall(text)))


def checked_duration(ms: float) -> int:
    """Return a duration in ms, rounded, or raise QueryError if it is too long."""
    if not ms <= _MAX_DURATION_MS:
        raise QueryError(f"duration out of range; expected at most {_MAX_DURATION_MS // 1000} s")
    return round(ms)


def number(text: str) -> float:
    """Return a number as PromQL writes it; raise QueryError for a hexadecimal one that is too large."""
    try:
        return float(int(text, 16)) if text.startswith("0x") else float(text)
    except OverflowError:
        raise QueryError(f"parse error: the number {text[:50]} is too large") from None


def unquote(token: Lexeme) -> str:
    """Return the text in quotes.

    Raises:
        QueryError: an invalid escape, or a character that no label can have: NUL, half of a surrogate pair.
    """
    try:
        text = token.text[1:-1] if token.text[0] == "`" else str(ast.literal_eval(token.text))
        if b"\0" not in text.encode("utf-8"):
            return text
        raise ValueError("NUL")
    except (SyntaxError, ValueError):
        raise QueryError(f"1:{token.at + 1}: parse error: invalid text {token.text[:100]}") from None
