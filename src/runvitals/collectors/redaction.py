"""Keeps secrets out of what is recorded: command lines, URLs.

A value is hidden for its name (``--api-key``, ``HF_TOKEN=``, ``password:``), for its place in a URL
(``https://user:HERE@host``), or for its own looks (``ghp_…``, ``AKIA…``, a JSON web token). A name is judged
by its words: ``--tokenizer`` and ``--key-size`` are no secrets. Too much hidden costs a look into the script;
too little costs a password.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HIDDEN = "***"

# fmt: off
# Secret wherever they stand in a name.
_ALWAYS = frozenset((
    "password", "passwords", "passwd", "passphrase", "secret", "secrets", "credential", "credentials",
    "cookie", "authorization", "apikey", "apikeys", "accesskey", "secretkey", "privatekey", "authkey",
    "accountkey", "authtoken", "accesstoken", "apitoken",
))
# Secret as the last word of a name, unless the value is a small number or a yes or no: `--pad-token=0`.
_AT_THE_END = frozenset(("token", "key", "pass", "pwd", "auth", "pat", "sas", "signature", "sig", "dsn"))
_ENDINGS = ("token", "password", "secret", "apikey")
_PLAIN_VALUES = frozenset(("", "true", "false", "yes", "no", "on", "off", "none", "null"))
# After one of these, "key" and "token" are secret wherever they stand: AWS_ACCESS_KEY_ID, --api-keys-json.
_BEFORE_KEY = frozenset((
    "api", "access", "secret", "private", "auth", "account", "bearer", "session", "security",
))
_KEYS = frozenset(("key", "keys", "token", "tokens"))
# Names of the shell that only look like it: PWD is the working directory.
_HARMLESS = frozenset(("PWD", "OLDPWD"))
# How well-known tokens begin; what follows is a mixture of small and capital letters and digits.
_TOKENS = (
    "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "hf_", "sk-", "sk_live_", "sk_test_",
    "rk_live_", "xoxb-", "xoxp-", "xoxa-", "xapp-", "AIza", "ya29.", "eyJ", "npm_", "pypi-", "dckr_pat_",
    "nvapi-", "r8_", "whsec_", "SG.",
)
# fmt: on
_TOKEN_LENGTH = 18
_AWS_KEYS = ("AKIA", "ASIA")
_AWS_KEY_LENGTH = 20

_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")
_HOST_ENDS = frozenset("/?# \t\n\"'")
_VALUE_ENDS = frozenset(" \t\n,;&|)}]\"'<>")


def command(arguments: Sequence[str]) -> list[str]:
    """A command line without its secrets.

    >>> command(["train.py", "--api-key", "abc", "HF_TOKEN=abc", "--tokenizer", "bpe"])
    ['train.py', '--api-key', '***', 'HF_TOKEN=***', '--tokenizer', 'bpe']
    """
    clean: list[str] = []
    option = ""  # the secret option whose value may come next
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if option and not argument.startswith("--"):
            clean.append(HIDDEN if is_secret(option, argument) else argument)
        elif equals and _is_name(name) and is_secret(name, value):
            clean.append(f"{name}={HIDDEN}")
        else:
            clean.append(text(argument))
        option = argument if argument.startswith("-") and _is_name(argument) else ""
        if option and not is_secret(option, "value"):
            option = ""
    return clean


def text(value: str) -> str:
    """Free text without its secrets: assignments, headers, URLs, tokens; `bash -c` and `python -c` are such.

    >>> text("export PASSWORD='a b'; curl -H 'Authorization: Bearer abc' https://me:abc@host/")
    "export PASSWORD='***'; curl -H 'Authorization: ***' https://me:***@host/"
    """
    return _without_tokens(_without_assigned(url(value)))


def url(value: str) -> str:
    """Text whose URLs have lost their passwords.

    >>> url("postgresql+psycopg://me:abc@db:5432/runs and https://ghp_abc@github.com/me/it.git")
    'postgresql+psycopg://me:***@db:5432/runs and https://***@github.com/me/it.git'
    """
    parts = value.split("://")
    for number in range(1, len(parts)):
        part = parts[number]
        end = next((at for at, letter in enumerate(part) if letter in _HOST_ENDS), len(part))
        user, sign, host = part[:end].rpartition("@")
        name, colon, _ = user.partition(":")
        if colon:
            user = f"{name}:{HIDDEN}"
        elif parts[number - 1].endswith(("http", "https")):
            user = HIDDEN
        if sign:
            parts[number] = f"{user}@{host}{part[end:]}"
    return "://".join(parts)


def is_secret(name: str, value: str) -> bool:
    """Whether a value has to be hidden for its name.

    >>> is_secret("--hub_token", "abc"), is_secret("--pad_token", "0"), is_secret("tokenizer", "bpe")
    (True, False, False)
    """
    if name in _HARMLESS:
        return False
    words = list(_words(name))
    if any(word in _ALWAYS for word in words):
        return True
    if any(word in _KEYS and words[at] in _BEFORE_KEY for at, word in enumerate(words[1:])):
        return True
    if not words or not (words[-1] in _AT_THE_END or words[-1].endswith(_ENDINGS)):
        return False
    plain = value.strip("\"'").lower()
    number = len(plain) <= 6 and plain.lstrip("-").replace(".", "", 1).isdigit()
    return not (number or plain in _PLAIN_VALUES)


def _words(name: str) -> Iterator[str]:
    """The words of a name, by signs and by capitals: `HFToken`, `hf-token`, `HF_TOKEN` are hf, token."""
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


def _without_assigned(value: str) -> str:
    """Text in which the values of secret names are hidden: `name=value`, `name: value`, `--name value`."""
    clean, copied, at = "", 0, 0
    while at < len(value):
        if value[at] not in "=: \t" or value[at : at + 3] == "://":
            at += 1
            continue
        name = _name_before(value, at)
        start = _value_after(value, at)
        if (value[at] in " \t" and not name.startswith("--")) or start == len(value):
            at += 1
            continue
        end = _value_end(value, start, whole="authorization" in name.lower() or "cookie" in name.lower())
        if not is_secret(name, value[start:end]):
            at += 1
            continue
        clean += value[copied:start] + HIDDEN
        copied = at = end
    return clean + value[copied:]


def _name_before(value: str, end: int) -> str:
    """The name that ends before a sign; blanks and a closing quote may lie between."""
    while end and value[end - 1] in " \t\"'":
        end -= 1
    start = end
    while start and value[start - 1] in _NAME:
        start -= 1
    return value[start:end]


def _value_after(value: str, at: int) -> int:
    """Where the value after a sign begins, behind blanks and an opening quote."""
    at += 1
    while at < len(value) and value[at] in " \t=:":
        at += 1
    return at + 1 if value[at : at + 1] in ("'", '"') else at


def _value_end(value: str, start: int, whole: bool) -> int:
    """Where a value ends: at its closing quote, else at a blank or sign; a whole one at the line's end."""
    quote = value[start - 1]  # a value has a sign before it
    if quote in "'\"":
        end = value.find(quote, start)
        return len(value) if end < 0 else end
    end = start
    while end < len(value) and value[end] not in ("\"'\n" if whole else _VALUE_ENDS):
        end += 1
    return end


def _without_tokens(value: str) -> str:
    """Text in which every word that looks like a well-known token is hidden."""
    clean, at = "", 0
    while at < len(value):
        end = at
        while end < len(value) and value[end] in _NAME:
            end += 1
        clean += HIDDEN if _is_token(value[at:end]) else value[at:end]
        clean += value[end : end + 1]
        at = end + 1
    return clean


def _is_token(word: str) -> bool:
    if word.startswith(_AWS_KEYS):
        return len(word) == _AWS_KEY_LENGTH and word.isalnum() and word.isupper()
    mixed = any(map(str.isupper, word)) and any(map(str.islower, word)) and any(map(str.isdigit, word))
    return mixed and len(word) >= _TOKEN_LENGTH and word.startswith(_TOKENS)
