"""Hides secrets in everything that is recorded or printed: command lines, URLs, messages, labels,
configurations.

A value is hidden because of its name (``--api-key``, ``HF_TOKEN=``, ``password:``), its position in a URL
(``https://user:HERE@host``), or its form (`secret_patterns`). Names are judged by their words:
``--tokenizer`` and ``--key-size`` are not secrets. Hiding too much costs a look at the script; hiding too
little costs a password.
"""

from __future__ import annotations

from binascii import a2b_base64

from runvitals.environment.password_options import PasswordOptions, before_closing, passwords
from runvitals.environment.secret_patterns import HIDDEN as HIDDEN
from runvitals.environment.secret_patterns import hide as hide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    _Judge = Callable[[str, str], bool]  # whether a value is secret because of its name

# fmt: off
# Words that make a name secret in any position.
_ALWAYS = frozenset((
    "password", "passwords", "passwd", "passphrase", "secret", "secrets", "credential", "credentials",
    "cookie", "authorization", "apikey", "apikeys", "accesskey", "secretkey", "privatekey", "authkey",
    "accountkey", "authtoken", "accesstoken", "apitoken", "connectionstring", "webhook", "webhooks", "jwt",
))
# Words that make a name secret at its end, unless the value is a small number or a boolean: `--pad-token=0`.
_AT_THE_END = frozenset((
    "token", "key", "pass", "pwd", "auth", "pat", "sas", "signature", "sig", "dsn", "bearer",
    "pw", "passcode", "cred", "creds", "otp",
))
# Last words of names whose value is secret only if it looks like a secret: `label_key`, `data.auth`.
_OFTEN_HARMLESS = frozenset(("key", "pass", "auth", "pat", "sas", "signature", "sig", "token"))
# Tokens of language models: pad_token, eos_token.
_BEFORE_MODEL_TOKEN = frozenset((
    "first", "next", "last", "think", "reward", "tool", "call", "prediction", "label", "pad", "padding",
    "eos", "bos", "unk", "sep", "cls", "mask", "eot", "eod", "image", "audio", "video",
    "start", "end", "stop", "begin", "special", "prefix", "suffix", "separator",
))
# Keys for searching or sorting.
_BEFORE_HARMLESS_KEY = frozenset((
    "sort", "group", "by", "label", "image", "text", "cache", "primary", "foreign", "monitor", "best", "rng",
    "registry", "config", "dataset", "data", "metric", "unexpected", "missing", "partition", "dict", "state",
))
_ENDINGS = ("token", "password", "secret", "apikey")
_PLAIN_VALUES = frozenset(("", "true", "false", "yes", "no", "on", "off", "none", "null", "[]", "{}", "()"))
# After one of these words, "key" and "token" are secret in any position: AWS_ACCESS_KEY_ID, --api-keys-json.
_BEFORE_KEY = frozenset((
    "api", "access", "secret", "private", "auth", "account", "bearer", "session", "security",
))
_KEYS = frozenset(("key", "keys", "token", "tokens"))
# Shell variables that only look secret: PWD is the working directory.
_HARMLESS = frozenset(("PWD", "OLDPWD"))
# The password variable of `sshpass -e`. `sshpass` is a program: "sshpass: command not found".
_VARIABLES = frozenset(("SSHPASS",))
# File errors of the system and of runvitals: `/etc/passwd: Permission denied`.
_FILE_ERRORS = (
    "Permission denied", "No such file or directory", "Is a directory", "Not a directory", "File exists",
    "Operation not permitted", "Input/output error", "Read-only file system", "No space left on device",
    "Too many ", "cannot be ", "could not be ", "command not found", "not found", "not executable",
    "not readable", "not writable", "is not ",
)
# fmt: on
# Permissions on the server, whose names look like a name and its value.
_PERMISSIONS = ("secret:manage", "webhook:manage")
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")
_BLANKS = frozenset(" \t\r\n\"'<>`")
_HOST_ENDS = _BLANKS | frozenset("/?#\\")
_VALUE_ENDS = _BLANKS | frozenset("&|")
_MAYBE_VALUE_ENDS = frozenset(",;)}]")
_MOST_BLANKS = 32
_ANY_SECRET = "Secret123"  # a value that is secret after every secret name
_LONGEST_NAME = 256
# `curl -u me:password`
_USER_OPTIONS = frozenset(("-u", "--user", "-U", "--proxy-user"))
# Words before a secret in a header, a message, or a command: `wandb login KEY`.
_SCHEMES = ("bearer ", "basic ", "token ", "login ")
_SHORTEST_USER_SECRET = 6
_LONGEST_PLAIN_WORD = 6
_BRACKETS = {"[": "]", "(": ")"}
_LONGEST_LIST = 4096
_SMALLEST_PIN = 1000  # lower numbers are counts: `n_api_keys`


def command(arguments: Sequence[str]) -> list[str]:
    """A command line with its secrets hidden.

    >>> command(["train.py", "--api-key", "abc", "HF_TOKEN=abc", "--tokenizer", "bpe"])
    ['train.py', '--api-key', '***', 'HF_TOKEN=***', '--tokenizer', 'bpe']
    """
    clean: list[str] = []
    before = option = ""  # the last argument; a secret option whose value may follow
    options = PasswordOptions()
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
        before = argument
        option = argument if argument.startswith("-") and _is_name(argument) else ""
        if option and not is_secret(option, _ANY_SECRET):
            option = ""
    return clean


def text(value: str) -> str:
    """Free text with its secrets hidden: assignments, headers, URLs, tokens; also for `bash -c` and `python
    -c`.

    >>> text("export PASSWORD='a b'; curl -H 'Authorization: Bearer abc' https://me:abc@host/")
    "export PASSWORD='***'; curl -H 'Authorization: ***' https://me:***@host/"
    """
    return _clean(value, is_secret)


def _clean(value: str, is_secret: _Judge) -> str:
    value = _without_passwords(value)
    value = _without_assigned(_without_users(url(value)), is_secret)
    return hide(_without_bearers(_without_options(value)))


def _without_passwords(value: str) -> str:
    clean, copied = [], 0
    for start, end in passwords(value):
        clean += [value[copied:start], HIDDEN]
        copied = end
    return "".join(clean) + value[copied:]


def entries(value: Any, name: str = "", is_within_secret: bool = False) -> Any:
    """A configuration, or a part of it, with its secrets hidden.

    Args:
        name: of the entry that contains it.
        is_within_secret: whether an entry around it has a name like `credentials`.

    >>> entries({"lr": 0.1, "api_key": "abc", "pad_token": "</s>", "data": {"url": "https://me:abc@host"}})
    {'lr': 0.1, 'api_key': '***', 'pad_token': '</s>', 'data': {'url': 'https://me:***@host'}}
    """
    if isinstance(value, dict):
        kept: dict[Any, Any] = {}
        for key, entry in value.items():
            shown = hide(key) if isinstance(key, str) else key
            while shown in kept:
                shown = f"{shown}*"
            kept[shown] = entries(entry, str(key), is_within_secret or _is_always_secret(str(key)))
        return kept
    if isinstance(value, list):
        return [entries(entry, name, is_within_secret) for entry in _arguments(value)]
    if is_within_secret and isinstance(value, (str, int, float)) and not isinstance(value, bool):
        plain = value.lower() in _PLAIN_VALUES if isinstance(value, str) else abs(value) < _SMALLEST_PIN
        return value if plain else HIDDEN
    if not isinstance(value, str):
        return value
    if _is_secret_entry(name, value):
        return HIDDEN
    return _clean(value, is_secret if "://" in value else _is_secret_entry)


def _arguments(words: list[Any]) -> list[Any]:
    """A list; if it has options, as a command line has, with the secrets of their values hidden."""
    texts = [str(word) if isinstance(word, (str, int, float)) else "" for word in words]
    if not any(word.startswith("-") for word in texts):
        return words
    pairs = zip(words, texts, command(texts), strict=True)
    return [word if shown == written else shown for word, written, shown in pairs]


def _is_always_secret(name: str) -> bool:
    return is_secret(f"{name} x", _ANY_SECRET)


def _is_secret_entry(name: str, value: str) -> bool:
    """As `is_secret`, but after an ambiguous name (`label_key`) the value must look secret."""
    if not is_secret(name, value):
        return False
    words = list(_words(name))
    if is_secret(" ".join([*words[:-1], "x"]), value) or words[-1] not in _OFTEN_HARMLESS:
        return True
    if len(words) > 1 and words[-2] in _BEFORE_KEY:
        return True
    return len(value) >= 8 and any(map(str.isdigit, value)) and not any(map(str.isspace, value))


def url(value: str) -> str:
    """Text with the passwords in its URLs hidden.

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
    """The end of user, password and host of a URL, in the part after `://`.

    A password may contain a slash, though it should not: `me:a/b@host`. `host:8080/a@b` is ambiguous, and
        treated as
    one, unless the `@` begins a path segment or is in the query.
    """
    end = next((at for at, letter in enumerate(part) if letter in _HOST_ENDS), len(part))
    authority = part[:end]
    _, colon, port = authority.rpartition(":")
    if "@" in authority or not colon or "]" in port or part[end : end + 1] not in ("/", "?", "#"):
        return end
    blank = next((at for at, letter in enumerate(part) if letter in _BLANKS), len(part))
    if port.isdigit() and len(port) <= 5:
        blank = min(blank, *(at for at in (part.find("?"), part.find("#"), blank) if at >= 0))
    last = part.rfind("@", end, blank)
    if last < 0 or part[last - 1] == "/":  # https://host:8080/@scope/package
        return end
    return next((at for at in range(last, blank) if part[at] in _HOST_ENDS), blank)


def is_secret(name: str, value: str) -> bool:
    """Whether a value has to be hidden because of its name.

    >>> is_secret("--hub_token", "abc"), is_secret("--pad_token", "0"), is_secret("tokenizer", "bpe")
    (True, False, False)
    """
    if name in _HARMLESS:
        return False
    words = list(_words(name))
    if value.lower() in _PLAIN_VALUES:
        return False
    if name in _VARIABLES or any(word in _ALWAYS for word in words):
        return True
    if any(word in _KEYS and words[at] in _BEFORE_KEY for at, word in enumerate(words[1:])):
        return True
    if not words or not (words[-1] in _AT_THE_END or words[-1].endswith(_ENDINGS)):
        return False
    before = words[-2] if len(words) > 1 else ""
    if words[-1] == "token" and before in _BEFORE_MODEL_TOKEN:
        return False
    if words[-1] == "key" and (before in _BEFORE_HARMLESS_KEY or _are_words(value)):
        return False
    plain = value.strip("\"'").lower()
    if plain in _PLAIN_VALUES:
        return False
    return not (len(plain) <= 6 and plain.lstrip("-").replace(".", "", 1).isdigit())


def _are_words(value: str) -> bool:
    """Whether a value is a short word, or joined words: `loss`, `val_loss`, `layer.0/acc1`."""
    first, *others = value.strip("\"'").replace("/", "_").replace("-", "_").replace(".", "_").split("_")
    if not others:
        return first.isalpha() and first.islower() and len(first) <= _LONGEST_PLAIN_WORD
    return all(word.isalnum() and word == word.lower() and _digits(word) <= 1 for word in (first, *others))


def _digits(word: str) -> int:
    return sum(map(str.isdigit, word))


def _words(name: str) -> Iterator[str]:
    """The words of a name, split at punctuation and capitals: `HFToken`, `hf-token`, `HF_TOKEN` are hf,
    token.
    """
    word = ""
    for at, letter in enumerate(name):
        following = name[at + 1 : at + 2]
        if not letter.isalnum():
            if word:
                yield word.lower()
            word = ""
            continue
        if word and letter.isupper() and (word[-1].islower() or (word[-1].isupper() and following.islower())):
            yield word.lower()
            word = ""
        word += letter
    if word:
        yield word.lower()


def _is_name(name: str) -> bool:
    """Whether text can be the name of an option, a variable, or a Hydra override (`+env.TOKEN`)."""
    return bool(name) and all(letter in _NAME or letter in "+@/[]" for letter in name)


def _without_users(value: str) -> str:
    """Hide secrets in the position of a user: `wandb:SECRET@team`. An image's digest and a package's version
    (`image:tag@sha256:…`, `npm:react@18`) are left.
    """
    clean, copied = [], 0
    at = value.find("@")
    while at >= 0:
        begin = at
        while begin > copied and value[begin - 1] in _NAME and at - begin < _LONGEST_NAME:
            begin -= 1
        secret, after = value[begin:at], value[at + 1 : at + 8]
        named = begin > copied + 1 and value[begin - 1] == ":" and value[begin - 2] in _NAME
        random = len(secret) >= 20 and any(map(str.isdigit, secret))
        plain = (
            after[:1] in _BLANKS
            or after[:1].isdigit()
            or after.startswith(("sha256:", "sha512:"))
            or not after
        )
        if named and len(secret) >= _SHORTEST_USER_SECRET and (random or not plain):
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
            while end < len(value) and value[end] not in _VALUE_ENDS:
                end += 1
            end = before_closing(value, begin, end)
            colon = value.find(":", begin, end)
            if colon >= 0 and (at == 0 or value[at - 1] in _BLANKS):
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
            begin = end = at + len(scheme)
            while end < len(value) and value[end] not in _VALUE_ENDS and value[end] not in _MAYBE_VALUE_ENDS:
                end += 1
            if (at == 0 or not value[at - 1].isalnum()) and _is_credential(scheme, value[begin:end]):
                clean += [value[copied:begin], HIDDEN]
                copied = end
            at = lower.find(scheme, end)
        value = "".join(clean) + value[copied:]
        lower = value.lower()
    return value


def _is_credential(scheme: str, word: str) -> bool:
    """Whether a word after `bearer` or a similar word is a credential."""
    digit = any(map(str.isdigit, word))
    if word.startswith("-"):
        return False
    if scheme == "bearer ":
        return len(word) >= 8 or (digit and len(word) >= 3)
    if scheme == "basic ":
        return _is_user_and_password(word)
    return len(word) >= 20 and digit and word.replace("_", "").isalnum() and not word.isdigit()


def _is_user_and_password(word: str) -> bool:
    """Whether a word is `user:password` in base64."""
    if not word.isascii() or len(word) < _SHORTEST_USER_SECRET:
        return False
    try:
        return b":" in a2b_base64(word + "=" * (-len(word) % 4))
    except ValueError:
        return False


def _without_assigned(value: str, is_secret: _Judge) -> str:
    """Hide the values of secret names: `name=value`, `name: value`, `--name value`."""
    clean, copied, at = [], 0, 0
    while at < len(value):
        if value[at] not in "=: \t" or value[at : at + 3] == "://":
            at += 1
            continue
        name = _name_before(value, at)
        if not is_secret(name, _ANY_SECRET) or (value[at] in " \t" and not name.startswith("--")):
            at += 1
            continue
        start = _value_after(value, at)
        if start == len(value) or _is_file_error(value, at, start) or _is_permission(value, at, name):
            at += 1
            continue
        end = _value_end(value, start, whole="authorization" in name.lower() or "cookie" in name.lower())
        if not is_secret(name, value[start:end]):
            at += 1
            continue
        clean += [value[copied:start], HIDDEN]
        copied = at = end
    return "".join(clean) + value[copied:]


def _is_file_error(value: str, colon: int, start: int) -> bool:
    """Whether a name is the last part of a path, followed by an error of the system."""
    if value[colon] != ":" or not value.startswith(_FILE_ERRORS, start):
        return False
    begin = colon
    while begin > 0 and value[begin - 1] in _NAME and colon - begin < _LONGEST_NAME:
        begin -= 1
    return begin > 0 and value[begin - 1] == "/"


def _is_permission(value: str, colon: int, name: str) -> bool:
    """Whether a name and what follows it is the name of a permission: `secret:manage`."""
    begin = colon - len(name)
    return any(
        value.startswith(permission, begin) and value[begin + len(permission) :][:1] not in _NAME
        for permission in _PERMISSIONS
        if permission.startswith(f"{name}:")
    )


def _name_before(value: str, end: int) -> str:
    """The name before a position; spaces and a closing quote may be between."""
    least = max(0, end - _MOST_BLANKS)
    while end > least and value[end - 1] in " \t\"'\\":
        end -= 1
    start = end
    least = max(0, end - _LONGEST_NAME)
    while start > least and value[start - 1] in _NAME:
        start -= 1
    return value[start:end]


def _value_after(value: str, at: int) -> int:
    """The start of the value after a position, after spaces and an opening quote."""
    at += 1
    most = min(len(value), at + _MOST_BLANKS)
    while at < most and value[at] in " \t=:":
        at += 1
    if value[at : at + 1] == "\\":  # a quoted text within a text: \"api_key\": \"…
        at += 1
    return at + 1 if value[at : at + 1] in ("'", '"') else at


def _value_end(value: str, start: int, whole: bool) -> int:
    """The end of a value: its closing quote, else a space or sign; for a whole one, the end of the line."""
    quote = value[start - 1]  # there is always a sign before a value
    bracket = _BRACKETS.get(value[start])
    if bracket is not None and quote not in "'\"":
        end = value.find(bracket, start, start + _LONGEST_LIST)
        if end >= 0:
            return end + 1
    if quote in "'\"":
        end = value.find(quote, start)
        end = len(value) if end < 0 else end
        return end - 1 if end > start and value[end - 1] == "\\" else end
    end = start
    while end < len(value):
        if whole and value[end] in "\"'\n":
            break
        if not whole and (value[end] in _VALUE_ENDS or _ends_here(value, end)):
            break
        end += 1
    return end


def _ends_here(value: str, at: int) -> bool:
    """Whether a comma, a semicolon or a bracket ends a value, since passwords may contain them too. It does
    at the end of a word, and before another name with a sign.
    """
    if value[at] not in _MAYBE_VALUE_ENDS:
        return False
    after = at + 1
    while after < len(value) and value[after] in _MAYBE_VALUE_ENDS:
        after += 1
    if after == len(value) or value[after] in _VALUE_ENDS:
        return True
    most = min(len(value), after + _LONGEST_NAME)
    while after < most and value[after] in _NAME:
        after += 1
    return value[after : after + 1] in ("=", ":")
