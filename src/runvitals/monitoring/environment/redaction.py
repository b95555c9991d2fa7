"""Hides secrets in everything that is recorded or printed.

Command lines, URLs, messages, labels, configurations.

A value is hidden because of its name (``--api-key``, ``HF_TOKEN=``, ``password:``), its position in a URL
(``https://user:HERE@host``), or its form (`secret_patterns`). `secret_names` judges names. Hiding too much
costs a look at the script; hiding too little costs a password.
"""

from __future__ import annotations

from binascii import a2b_base64

from runvitals.monitoring.environment.assigned_secrets import (
    BLANKS,
    MAYBE_VALUE_ENDS,
    VALUE_ENDS,
    without_assigned,
)
from runvitals.monitoring.environment.password_options import PasswordOptions, before_closing, passwords
from runvitals.monitoring.environment.secret_names import (
    ANY_SECRET,
    is_always_secret,
    is_plain,
    is_secret_entry,
)
from runvitals.monitoring.environment.secret_names import is_secret as is_secret
from runvitals.monitoring.environment.secret_patterns import HIDDEN as HIDDEN
from runvitals.monitoring.environment.secret_patterns import hide as hide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from runvitals.monitoring.environment.secret_names import Judge

_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")
_HOST_ENDS = BLANKS | frozenset("/?#\\")
_MAX_NAME_LENGTH = 256
_MAX_SPACES = 2  # in a password
# `curl -u me:password`
_USER_OPTIONS = frozenset(("-u", "--user", "-U", "--proxy-user"))
# The kinds of destinations with an address that is no URL. Some addresses are paths, or may be one.
DESTINATION_KINDS = frozenset((
    "cloudwatch", "files", "mlflow", "otel", "prometheus", "remote_write", "tensorboard", "wandb",
))  # fmt: skip
_PATH_KINDS = frozenset(("files", "mlflow", "tensorboard"))
_DESTINATION_ENDS = BLANKS | frozenset("\"',;[]()")
_MIN_KNOWN_LENGTH = 6
_NO_VARIABLES: dict[str, str] = {}
# Words before a secret in a header, a message, or a command: `wandb login KEY`.
_SCHEMES = ("bearer ", "basic ", "token ", "login ")
_MIN_USER_SECRET_LENGTH = 6
# Words before a name and its value in separate arguments: `aws configure set aws_secret_access_key X`.
_SETTERS = frozenset(("set", "config", "configure", "modify"))


def command(arguments: Sequence[str], environ: Mapping[str, str] = _NO_VARIABLES) -> list[str]:
    """Return a command line with its secrets hidden.

    Args:
        arguments: the command line.
        environ: its environment. The values of secret variables are hidden wherever they occur.

    >>> command(["train.py", "--api-key", "abc", "HF_TOKEN=abc", "--tokenizer", "bpe"])
    ['train.py', '--api-key', '***', 'HF_TOKEN=***', '--tokenizer', 'bpe']
    """
    secrets = known_secrets(environ)
    if secrets:
        arguments = [without_known(argument, secrets) for argument in arguments]
    clean: list[str] = []
    before = option = ""  # the last argument; a secret option whose value may follow
    options = PasswordOptions()
    sets = False  # a name and its value may follow in separate arguments
    for argument in arguments:
        password_at = options.read(argument)
        name, equals, value = argument.partition("=")
        user, colon, _ = argument.partition(":")
        if option and not argument.startswith("--"):
            clean.append(HIDDEN if is_secret(option, argument) else argument)
        elif password_at >= 0:
            clean.append(argument[:password_at] + HIDDEN)
        elif colon and (before in _USER_OPTIONS or (argument[:2] in _USER_OPTIONS and len(user) > 2)):
            clean.append(f"{user}:{HIDDEN}")
        elif name in _USER_OPTIONS and equals and ":" in value:
            clean.append(f"{name}={value.partition(':')[0]}:{HIDDEN}")
        elif f"{before.lower()} " in _SCHEMES and _is_credential(f"{before.lower()} ", argument):
            clean.append(HIDDEN)
        elif equals and _is_name(name) and is_secret(name, value):
            clean.append(f"{name}={HIDDEN}")
        else:
            clean.append(text(argument))
        sets = sets or argument in _SETTERS
        if not (before == "login" and argument.startswith("-")):  # wandb login --relogin KEY
            before = argument
        names = (argument.startswith("-") or sets) and _is_name(argument)
        option = argument if names and is_secret(argument, ANY_SECRET) else ""
    return clean


def known_secrets(environ: Mapping[str, str]) -> list[str]:
    """Return the values of the secret variables of an environment, the longest first."""
    secrets = {value for name, value in environ.items() if is_secret(name, value)}
    return sorted((value for value in secrets if len(value) >= _MIN_KNOWN_LENGTH), key=len, reverse=True)


def without_known(value: str, secrets: Sequence[str]) -> str:
    """Return a text with these secrets hidden."""
    for secret in secrets:
        value = value.replace(secret, HIDDEN)
    return value


def text(value: str) -> str:
    """Hide the secrets in free text: assignments, headers, URLs, tokens.

    Also in the code of `bash -c` and `python -c`.

    >>> text("export PASSWORD='a b'; curl -H 'Authorization: Bearer abc' https://me:abc@host/")
    "export PASSWORD='***'; curl -H 'Authorization: ***' https://me:***@host/"
    """
    return _clean(value, is_secret)


def _clean(value: str, is_secret: Judge) -> str:
    value = _without_passwords(value)
    value = without_assigned(_without_users(_without_destination_users(url(value))), is_secret)
    return hide(_without_bearers(_without_options(value)))


def _without_passwords(value: str) -> str:
    clean, copied = [], 0
    for start, end in passwords(value):
        clean += [value[copied:start], HIDDEN]
        copied = end
    return "".join(clean) + value[copied:]


def entries(value: Any, name: str = "", is_within_secret: bool = False) -> Any:
    """Return a configuration, or a part of it, with its secrets hidden.

    Args:
        value: the configuration, or the part.
        name: of the entry that contains it.
        is_within_secret: whether an entry around it has a name like `credentials`.

    >>> entries({"lr": 0.1, "api_key": "abc", "pad_token": "</s>", "data": {"url": "https://me:abc@host"}})
    {'lr': 0.1, 'api_key': '***', 'pad_token': '</s>', 'data': {'url': 'https://me:***@host'}}
    """
    if isinstance(value, dict):
        safe_entries: dict[Any, Any] = {}
        entry_name = value.get("name") or value.get("key")  # {"name": "API_KEY", "value": "abc"}
        for key, entry in value.items():
            safe_key = _shown_name(key) if isinstance(key, str) else key
            while safe_key in safe_entries:
                safe_key = f"{safe_key}*"
            inner = entry_name if key == "value" and isinstance(entry_name, str) else str(key)
            safe_entries[safe_key] = entries(entry, inner, is_within_secret or is_always_secret(inner))
        return safe_entries
    if isinstance(value, (list, tuple)):
        return [entries(entry, name, is_within_secret) for entry in _arguments(list(value))]
    if is_within_secret and isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return value if is_plain(value) else HIDDEN
    if not isinstance(value, str):
        return value
    if is_secret_entry(name, value):
        return HIDDEN
    return _clean(value, is_secret if "://" in value else is_secret_entry)


def _shown_name(name: str) -> str:
    """Return the name of an entry without secrets. Most are plain names, which assign nothing."""
    return hide(name) if _NAME.issuperset(name) else text(name)


def _arguments(words: list[Any]) -> list[Any]:
    """A list; if it has options, as a command line has, or is a name and its value, without its secrets."""
    texts = [str(word) if isinstance(word, (str, int, float)) else "" for word in words]
    if len(words) == 2 and is_always_secret(texts[0]) and not (texts[1].isalpha() and texts[1].islower()):
        return [words[0], words[1] if is_plain(texts[1]) or not texts[1] else HIDDEN]
    if not any(word.startswith("-") for word in texts):
        return words
    pairs = zip(words, texts, command(texts), strict=True)
    return [word if shown == written else shown for word, written, shown in pairs]


def url(value: str) -> str:
    """Return text with the passwords in its URLs hidden.

    >>> url("postgresql+psycopg://me:abc@db:5432/runs and https://ghp_abc@github.com/me/it.git")
    'postgresql+psycopg://me:***@db:5432/runs and https://***@github.com/me/it.git'
    """
    parts = value.split("://")
    for number in range(1, len(parts)):
        part = parts[number]
        end = _authority_end(part)
        user, sign, host = part[:end].rpartition("@")
        name, colon, _ = user.partition(":")
        if colon:
            user = f"{name}:{HIDDEN}"
        elif parts[number - 1].endswith(("http", "https")):
            user = HIDDEN
        if sign:
            parts[number] = f"{user}@{host}{part[end:]}"
    return "://".join(parts)


def _authority_end(part: str) -> int:
    """Return the end of user, password and host of a URL, in the part after `://`.

    A password may contain a slash, though it should not: `me:a/b@host`. `host:8080/a@b` is ambiguous, and
    treated as one, unless the `@` begins a path segment or is in the query.
    """
    end = next((at for at, letter in enumerate(part) if letter in _HOST_ENDS), len(part))
    authority = part[:end]
    _, colon, port = authority.rpartition(":")
    if "@" in authority or not colon or "]" in port:
        return end
    if part[end : end + 1] not in ("/", "?", "#"):
        return _end_after_odd_password(part, end, port)
    blank = next((at for at, letter in enumerate(part) if letter in BLANKS), len(part))
    if port.isdigit() and len(port) <= 5:
        blank = min(blank, *(at for at in (part.find("?"), part.find("#"), blank) if at >= 0))
    last = part.rfind("@", end, blank)
    if last < 0 or part[last - 1] == "/":  # https://host:8080/@scope/package
        return end
    return next((at for at in range(last, blank) if part[at] in _HOST_ENDS), blank)


def _is_name(name: str) -> bool:
    """Return whether text can be the name of an option, a variable, or a Hydra override (`+env.TOKEN`)."""
    return bool(name) and all(letter in _NAME or letter in "+@/[]" for letter in name)


def _end_after_odd_password(part: str, end: int, port: str) -> int:
    """Return the end of user, password and host, if the password has a quote, a backslash or a space."""
    at = part.find("@", end, end + _MAX_NAME_LENGTH)
    if at < 0 or port.isdigit() or "\n" in part[end:at] or part.count(" ", end, at) > _MAX_SPACES:
        return end
    host = at + 1
    while host < len(part) and part[host] not in _HOST_ENDS:
        host += 1
    return host if host > at + 1 else end


def _without_destination_users(value: str) -> str:
    """Hide what precedes an `@` in the address of a destination: `prometheus:SECRET@host`.

    The addresses of some kinds are paths, in which an `@` after a slash is a part of a name.
    """
    if "@" not in value:
        return value
    clean, copied = [], 0
    for name, colon, begin in _destinations(value):
        end = begin
        while end < len(value) and value[end] not in _DESTINATION_ENDS:
            end += 1
        address = value[begin:end]
        paths = name in _PATH_KINDS
        if "://" in address or (paths and address.startswith(("/", ".", "~"))) or colon < copied:
            continue
        user, sign, _ = address.partition("?")[0].partition("/" if paths else "\0")[0].rpartition("@")
        if sign and user:
            clean += [value[copied:begin], HIDDEN]
            copied = begin + len(user)
    return "".join(clean) + value[copied:]


def _destinations(value: str) -> Iterator[tuple[str, int, int]]:
    """Find the beginning of a destination: of its kind, the colon, and the address."""
    colon = value.find(":")
    while colon >= 0:
        begin = colon
        while begin and value[begin - 1] in _NAME:
            begin -= 1
        if value[begin:colon] in DESTINATION_KINDS:
            yield value[begin:colon], colon, colon + 1
        colon = value.find(":", colon + 1)


def _without_users(value: str) -> str:
    """Hide secrets in the position of a user: `wandb:SECRET@team`.

    An image's digest and a package's version (`image:tag@sha256:…`, `npm:react@18`) are left.
    """
    clean, copied = [], 0
    at = value.find("@")
    while at >= 0:
        begin = at
        while begin > copied and value[begin - 1] in _NAME and at - begin < _MAX_NAME_LENGTH:
            begin -= 1
        secret, after = value[begin:at], value[at + 1 : at + 8]
        named = begin > copied + 1 and value[begin - 1] == ":" and value[begin - 2] in _NAME
        random = len(secret) >= 20 and any(map(str.isdigit, secret))
        plain = (
            after[:1] in BLANKS
            or after[:1].isdigit()
            or after.startswith(("sha256:", "sha512:"))
            or not after
        )
        if named and len(secret) >= _MIN_USER_SECRET_LENGTH and (random or not plain):
            clean += [value[copied:begin], HIDDEN]
            copied = at
        at = value.find("@", at + 1)
    return "".join(clean) + value[copied:]


def _without_options(value: str) -> str:
    """Hide what follows a colon after `-u`, as in `curl -u`."""
    for option in _USER_OPTIONS:
        clean, copied = [], 0
        at = value.find(f"{option} ")
        while at >= 0:
            begin = end = at + len(option) + 1
            while end < len(value) and value[end] not in VALUE_ENDS:
                end += 1
            end = before_closing(value, begin, end)
            colon = value.find(":", begin, end)
            if colon >= 0 and (at == 0 or value[at - 1] in BLANKS):
                clean += [value[copied : colon + 1], HIDDEN]
                copied = end
            at = value.find(f"{option} ", end)
        value = "".join(clean) + value[copied:]
    return value


def _without_bearers(value: str) -> str:
    """Hide the word after `bearer`, and words that look secret after similar words."""
    lower = value.lower()
    if len(lower) != len(value):
        return value
    for scheme in _SCHEMES:
        clean, copied = [], 0
        at = lower.find(scheme)
        while at >= 0:
            begin = _after_flags(value, at + len(scheme)) if scheme == "login " else at + len(scheme)
            end = begin
            while end < len(value) and value[end] not in VALUE_ENDS and value[end] not in MAYBE_VALUE_ENDS:
                end += 1
            if (at == 0 or not value[at - 1].isalnum()) and _is_credential(scheme, value[begin:end]):
                clean += [value[copied:begin], HIDDEN]
                copied = end
            at = lower.find(scheme, end)
        value = "".join(clean) + value[copied:]
        lower = value.lower()
    return value


def _after_flags(value: str, at: int) -> int:
    """Return the start of the first word after options: `wandb login --relogin KEY`."""
    least = at
    while value.startswith("--", at) and at - least < _MAX_NAME_LENGTH:
        blank = value.find(" ", at, at + _MAX_NAME_LENGTH)
        if blank < 0:
            break
        at = blank + 1
    return at


def _is_credential(scheme: str, word: str) -> bool:
    """Return whether a word after `bearer` or a similar word is a credential."""
    digit = any(map(str.isdigit, word))
    if word.startswith("-"):
        return False
    if scheme == "bearer ":
        return len(word) >= 8 or (digit and len(word) >= 3)
    if scheme == "basic ":
        return _is_user_and_password(word)
    return len(word) >= 20 and digit and word.replace("_", "").isalnum() and not word.isdigit()


def _is_user_and_password(word: str) -> bool:
    """Return whether a word is `user:password` in base64."""
    if not word.isascii() or len(word) < _MIN_USER_SECRET_LENGTH:
        return False
    try:
        return b":" in a2b_base64(word + "=" * (-len(word) % 4))
    except ValueError:
        return False
