"""Hides the values of secret names in free text, however they are assigned.

`name=value`, `name: value`, `--name value`, `env["name"] = value`, `setenv("name", "value")`,
`<name>value</name>`, blocks of YAML.
"""

from __future__ import annotations

from runvitals.monitoring.environment.secret_names import (
    ANY_SECRET,
    is_always_secret,
    is_plain,
    is_secret_entry,
)
from runvitals.monitoring.environment.secret_patterns import HIDDEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.environment.secret_names import Judge

_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")
BLANKS = frozenset(" \t\r\n\"'<>`")
VALUE_ENDS = BLANKS | frozenset("&|")
MAYBE_VALUE_ENDS = frozenset(",;)}]")
_QUOTES = frozenset("\"'")
_SIGNS = frozenset("=: \t,>%")
_ENCODED_SIGNS = ("%3d", "%3a")
_HEX = frozenset("0123456789abcdefABCDEF")
_BRACKETS = {"[": "]", "(": ")", "{": "}"}
# A block of YAML begins on the next line.
_BLOCK_SIGNS = frozenset(("", "|", ">", "|-", ">-", "|+", ">+"))
# Quoted parts of a shell's word that continue it: 'it'\''s', 'it'"'"'s'
_JOINTS = ("\\''", "\"'\"'")
_MAX_BLANKS = 32
_MAX_NAME_LENGTH = 256
_MAX_LIST_LENGTH = 4096
_FARTHEST_NAME = 160
_MAX_SUBSCRIPTS = 8
# File errors of the system and of runvitals: `/etc/passwd: Permission denied`.
_FILE_ERRORS = (
    "Permission denied", "No such file or directory", "Is a directory", "Not a directory", "File exists",
    "Operation not permitted", "Input/output error", "Read-only file system", "No space left on device",
    "Too many ", "cannot be ", "could not be ", "command not found", "not found", "not executable",
    "not readable", "not writable", "is not ",
)  # fmt: skip
# Permissions on the server, whose names look like a name and its value.
_PERMISSIONS = ("secret:manage", "webhook:manage")


def without_assigned(value: str, is_secret: Judge) -> str:
    """Return the text with the values of secret names hidden.

    Args:
        value: the text.
        is_secret: whether a value is secret because of its name.
    """
    clean, copied, at = [], 0, 0
    while at < len(value):
        start, end = _secret_at(value, at, is_secret) if value[at] in _SIGNS else (0, 0)
        if end <= start:
            at += 1
            continue
        clean += [value[copied:start], HIDDEN]
        copied = at = end
    return "".join(clean) + value[copied:]


def _secret_at(value: str, at: int, is_secret: Judge) -> tuple[int, int]:
    """(start, end) of the secret that the sign at a position assigns.

    Both are the same if there is none.
    """
    if value[at] == ",":
        return _second_of_pair(value, at)
    if value[at] == ">":
        return _content_of_element(value, at, is_secret)
    if value[at] == "%":
        return _find_encoded(value, at, is_secret)
    if value[at : at + 3] == "://":
        return at, at
    name = _name_before(value, at)
    is_entry = False
    if value[at] in " \t":
        is_named = len(name) > 2 and name.startswith("-") and is_secret(name, ANY_SECRET)
    else:
        is_named = is_secret(name, ANY_SECRET) or _is_value_of_secret(value, at, name)
        is_entry = not is_named and value[at] == "=" and _is_entry_of_secret(value, at)
    if not (is_named or is_entry):
        return at, at
    block, block_end = _block_after(value, at) if value[at] == ":" else (at, at)
    if block_end > block:
        return block, block_end
    start = _value_after(value, at)
    if start == len(value) or _is_file_error(value, at, start) or _is_permission(value, at, name):
        return at, at
    end = _value_end(value, start, whole="authorization" in name.lower() or "cookie" in name.lower())
    if value[at] == ":" and (typed := _after_type(value, end)):
        start, end = typed, _value_end(value, typed, whole=False)
    if is_entry:
        return (at, at) if is_plain(value[start:end]) else (start, end)
    if name.lower() != "value" and not is_secret(name, value[start:end]):
        return at, at
    return start, end


def _is_value_of_secret(value: str, at: int, name: str) -> bool:
    """Return whether a field `value` follows a secret's name: `name: API_KEY`, `value: abc`."""
    if name.lower() != "value":
        return False
    before = value[max(0, at - _FARTHEST_NAME) : at]
    return any(is_secret_entry(_field(before, label), ANY_SECRET) for label in ("name", "key"))


def _is_entry_of_secret(value: str, sign: int) -> bool:
    """Return whether a sign follows a subscript of a secret's name: `config["credentials"]["me"] =`."""
    end = sign
    for _ in range(_MAX_SUBSCRIPTS):
        while end > 0 and value[end - 1] == " " and sign - end < _MAX_BLANKS:
            end -= 1
        begin = value.rfind("[", max(0, end - _MAX_NAME_LENGTH), end)
        if value[end - 1 : end] != "]" or begin < 0:
            return False
        if is_always_secret(_name_before(value, begin)):
            return True
        end = begin
    return False


def _field(text: str, label: str) -> str:
    """Return the last value of a field in a text: `name: API_KEY`, `"name": "API_KEY"`.

    "" if there is none.
    """
    lower = text.lower()
    begin = lower.rfind(label)
    while begin >= 0:
        first = begin + len(label)
        while first < len(text) and text[first] in " \t\"'\\=:":
            first += 1
        signs = text[begin + len(label) : first]
        if lower[begin - 1 : begin] not in _NAME and ("=" in signs or ":" in signs):
            end = first
            while end < len(text) and text[end] in _NAME:
                end += 1
            return text[first:end]
        begin = lower.rfind(label, 0, begin)
    return ""


def _second_of_pair(value: str, comma: int) -> tuple[int, int]:
    """Return the value in `setenv('API_KEY', 'abc')`, `('password', 'abc')` and `['--token', 'abc']`."""
    if comma == 0 or value[comma - 1] not in _QUOTES:
        return comma, comma
    quote = value[comma - 1]
    name = _name_before(value, comma)
    begin = comma - 1 - len(name)
    start = comma + 1
    while start < len(value) and value[start] in " \t" and start - comma < _MAX_BLANKS:
        start += 1
    if value[start : start + 1] not in _QUOTES or begin < 1 or value[begin - 1] != quote:
        return comma, comma
    start += 1
    end = _quoted_end(value, start)
    secret = value[start:end]
    before = value[begin - 2 : begin - 1]
    if name.startswith("-"):
        is_hidden = not secret.startswith("--") and is_secret_entry(name, ANY_SECRET)
    else:
        is_hidden = before == "(" or (before == "[" and not (secret.isalpha() and secret.islower()))
        is_hidden = is_hidden and is_secret_entry(name, ANY_SECRET if name.isupper() else secret)
    return (start, end) if is_hidden else (comma, comma)


def _content_of_element(value: str, at: int, is_secret: Judge) -> tuple[int, int]:
    """Return the content of an element of XML: `<password>abc</password>`."""
    name = _name_before(value, at)
    begin = at - len(name)
    if not name or value[begin - 1 : begin] != "<" or not is_secret(name, ANY_SECRET):
        return at, at
    end = value.find("<", at + 1, at + 1 + _MAX_LIST_LENGTH)
    return (at + 1, end) if end >= 0 and value.startswith(f"</{name}", end) else (at, at)


def _find_encoded(value: str, at: int, is_secret: Judge) -> tuple[int, int]:
    """The value after an equals sign or a colon that is percent-encoded, as in a URL within another."""
    if value[at : at + 3].lower() not in _ENCODED_SIGNS:
        return at, at
    name = _name_before(value, at)
    start = end = at + 3
    while end < len(value) and value[end] not in VALUE_ENDS and value[end : end + 3] != "%26":
        end += 1
    return (start, end) if is_secret(name, value[start:end]) else (at, at)


def _after_type(value: str, end: int) -> int:
    """The start of the value in `password: str = 'abc'`, where `end` is the end of the type; else 0."""
    at = end
    while value[at : at + 1] == " ":
        at += 1
    if value[at : at + 1] != "=" or at == end or value[at + 1 : at + 2] == "=":
        return 0
    return _value_after(value, at)


def _block_after(value: str, colon: int) -> tuple[int, int]:
    """(start, end) of a block of YAML below a name, whose lines are indented further."""
    line_end = value.find("\n", colon, colon + _MAX_BLANKS)
    if line_end < 0 or value[colon + 1 : line_end].strip() not in _BLOCK_SIGNS:
        return colon, colon
    line_start = value.rfind("\n", max(0, colon - _MAX_NAME_LENGTH), colon) + 1
    own = _indentation(value, line_start)
    start = line_end + 1
    if start >= len(value) or _indentation(value, start) <= own:
        return colon, colon
    start += _indentation(value, start)
    end = start
    while True:
        following = value.find("\n", end)
        end = len(value) if following < 0 else following
        if following < 0 or (value[end + 1 : end + 2] != "\n" and _indentation(value, end + 1) <= own):
            return start, end
        end += 1


def _indentation(value: str, start: int) -> int:
    at = start
    while value[at : at + 1] == " ":
        at += 1
    return at - start


def _is_file_error(value: str, colon: int, start: int) -> bool:
    """Return whether a name is the last part of a path, followed by an error of the system."""
    if value[colon] != ":" or not value.startswith(_FILE_ERRORS, start):
        return False
    begin = colon
    while begin > 0 and value[begin - 1] in _NAME and colon - begin < _MAX_NAME_LENGTH:
        begin -= 1
    return begin > 0 and value[begin - 1] == "/"


def _is_permission(value: str, colon: int, name: str) -> bool:
    """Return whether a name and what follows it is the name of a permission: `secret:manage`."""
    begin = colon - len(name)
    return any(
        value.startswith(permission, begin) and value[begin + len(permission) :][:1] not in _NAME
        for permission in _PERMISSIONS
        if permission.startswith(f"{name}:")
    )


def _name_before(value: str, end: int) -> str:
    """Return the name before a position.

    Spaces, a closing quote and a bracket (`env["name"] =`) may be between.
    """
    least = max(0, end - _MAX_BLANKS)
    while end > least and (
        value[end - 1] in " \t\"'\\" or (value[end - 1] == "]" and value[end - 2 : end - 1] in _QUOTES)
    ):
        end -= 1
    start = end
    least = max(0, end - _MAX_NAME_LENGTH)
    while start > least and value[start - 1] in _NAME:
        start -= 1
    if value[start - 1 : start] == "%" and _HEX.issuperset(value[start : start + 2]):
        start += 2  # `%26token=`
    return value[start:end]


def _value_after(value: str, at: int) -> int:
    """Return the start of the value after a position, after spaces and an opening quote."""
    at += 1
    most = min(len(value), at + _MAX_BLANKS)
    while at < most and (value[at] in " \t=:" or (value[at] == ">" and value[at - 1] == "=")):
        at += 1
    quote = at
    while value[quote : quote + 1] == "\\":  # a quoted text within a text: \"api_key\": \"…
        quote += 1
    return quote + 1 if value[quote : quote + 1] in _QUOTES else at


def _value_end(value: str, start: int, whole: bool) -> int:
    """Return the end of a value: its closing quote, else a space or sign.

    For a whole one, the end of the line.
    """
    quote = value[start - 1]  # there is always a sign before a value
    if quote in _QUOTES:
        return _quoted_end(value, start)
    end = _bracketed_end(value, start)
    if end > start:
        return end
    end = start
    while end < len(value):
        if whole and value[end] in "\"'\n":
            break
        if not whole and (value[end] in VALUE_ENDS or _ends_here(value, end)):
            break
        end += 1
    return end


def _bracketed_end(value: str, start: int) -> int:
    """Return the end of a list or dictionary, with those within it; `start` if none begins there.

    One that is cut off, as in a long command line, ends with the last that ends within it, or, of quoted
    texts, with the text.
    """
    opening = value[start : start + 1]
    closing = _BRACKETS.get(opening)
    if closing is None:
        return start
    most = min(len(value), start + _MAX_LIST_LENGTH)
    last = value.rfind(closing, start, most)
    if last < 0:
        return most if value[start + 1 : start + 2] in _QUOTES else start
    depth = 0
    for at in range(start, last + 1):
        depth += (value[at] == opening) - (value[at] == closing)
        if depth == 0:
            return at + 1
    return last + 1


def _quoted_end(value: str, start: int) -> int:
    """Return the end of a quoted text: its closing quote, which is escaped as often as the opening one."""
    quote, level = value[start - 1], _backslashes(value, start - 1)
    end = value.find(quote, start)
    while end >= 0:
        before = min(_backslashes(value, end), end - start)
        joint = next((joint for joint in _JOINTS if value.startswith(joint, end + 1)), "")
        if joint and quote == "'" and not level:
            end = value.find(quote, end + 1 + len(joint))
        elif before > level if level else before % 2:
            end = value.find(quote, end + 1)
        else:
            return end - min(before, level)
    return len(value)


def _backslashes(value: str, at: int) -> int:
    """Count the backslashes before a position."""
    begin = at
    while begin > 0 and value[begin - 1] == "\\" and at - begin < _MAX_BLANKS:
        begin -= 1
    return at - begin


def _ends_here(value: str, at: int) -> bool:
    """Return whether a comma, a semicolon or a bracket ends a value, since passwords may contain them too.

    It does at the end of a word, and before another name with a sign.
    """
    if value[at] not in MAYBE_VALUE_ENDS:
        return False
    after = at + 1
    while after < len(value) and value[after] in MAYBE_VALUE_ENDS:
        after += 1
    if after == len(value) or value[after] in VALUE_ENDS:
        return True
    most = min(len(value), after + _MAX_NAME_LENGTH)
    while after < most and value[after] in _NAME:
        after += 1
    return value[after : after + 1] in ("=", ":")
