"""Names whose values must be hidden: `--api-key`, `HF_TOKEN`, `password`.

Names are judged by their words: `--tokenizer` and `--key-size` are not secrets.
"""

from __future__ import annotations

from itertools import pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Judge = Callable[[str, str], bool]  # whether a value is secret because of its name

# fmt: off
# Words that make a name secret in any position.
_ALWAYS = frozenset((
    "password", "passwords", "passwd", "passphrase", "secret", "secrets", "credential", "credentials",
    "cookie", "authorization", "apikey", "apikeys", "accesskey", "secretkey", "privatekey", "authkey",
    "accountkey", "authtoken", "accesstoken", "apitoken", "connectionstring", "webhook", "webhooks", "jwt",
    "storepass", "keypass", "userpass", "dbpass", "rootpass", "rootpw", "totp", "mnemonic",
    "sessionid", "sessid", "jsessionid", "phpsessid",
))
# Pairs of words that are such a word.
_ALWAYS_TOGETHER = frozenset((
    ("pass", "phrase"), ("pass", "word"), ("connection", "string"), ("conn", "str"), ("seed", "phrase"),
))
# Last words of names that only describe a secret: `password_file`, `webhook-timeout`.
_ABOUT = frozenset((
    "file", "path", "dir", "folder", "timeout", "limit", "length", "len", "size", "count", "type", "name",
))
# First words of names of numbers: `--num-secret-santas 5`.
_COUNTS = frozenset(("num", "n", "max", "min", "len"))
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
_KEY_FILES = (".pem", ".key", ".crt", ".pub", ".json", ".p12", ".pfx", ".ppk")
# fmt: on
ANY_SECRET = "Secret123"  # a value that is secret after every secret name
_MAX_PLAIN_WORD_LENGTH = 6
_MAX_SIGN_LENGTH = 3
_MIN_PIN = 1000  # lower numbers are counts: `n_api_keys`
_MIN_LIKELY_SECRET_LENGTH = 8


def is_secret(name: str, value: str) -> bool:
    """Return whether a value has to be hidden because of its name.

    >>> is_secret("--hub_token", "abc"), is_secret("--pad_token", "0"), is_secret("tokenizer", "bpe")
    (True, False, False)
    """
    if name in _HARMLESS:
        return False
    words = list(_words(name))
    if value.lower() in _PLAIN_VALUES or not words or words[-1] in _ABOUT:
        return False
    if words[0] in _COUNTS and value.isdigit():
        return False
    if name in _VARIABLES or _has_secret_word(words):
        return not (words[-1] == "key" and _is_key_file(value))
    if not (words[-1] in _AT_THE_END or words[-1].endswith(_ENDINGS)):
        return False
    before = words[-2] if len(words) > 1 else ""
    if words[-1] == "token" and before in _BEFORE_MODEL_TOKEN:
        return False
    if words[-1] == "key" and (before in _BEFORE_HARMLESS_KEY or _are_words(value) or _is_key_file(value)):
        return False
    plain = value.strip("\"'").lower()
    if plain in _PLAIN_VALUES or (len(plain) <= _MAX_SIGN_LENGTH and not any(map(str.isalnum, plain))):
        return False  # unexpected token: '}'
    return not (len(plain) <= 6 and plain.lstrip("-").replace(".", "", 1).isdigit())


def is_secret_entry(name: str, value: str) -> bool:
    """As `is_secret`, but after an ambiguous name (`label_key`) the value must look secret."""
    if not is_secret(name, value):
        return False
    words = list(_words(name))
    if is_secret(" ".join([*words[:-1], "x"]), value) or words[-1] not in _OFTEN_HARMLESS:
        return True
    if len(words) > 1 and words[-2] in _BEFORE_KEY:
        return True
    return (
        len(value) >= _MIN_LIKELY_SECRET_LENGTH
        and any(map(str.isdigit, value))
        and not any(map(str.isspace, value))
    )


def is_always_secret(name: str) -> bool:
    """Return whether everything under a name is secret, as under `credentials`."""
    words = list(_words(name))
    return bool(words) and words[-1] not in _ABOUT and _has_secret_word(words)


def is_plain(value: str | float) -> bool:
    """Return whether a value says nothing, whatever its name: `true`, "", a small number."""
    return value.lower() in _PLAIN_VALUES if isinstance(value, str) else abs(value) < _MIN_PIN


def _has_secret_word(words: list[str]) -> bool:
    if any(word in _ALWAYS for word in words):
        return True
    return any(
        pair in _ALWAYS_TOGETHER or (pair[0] in _BEFORE_KEY and pair[1] in _KEYS) for pair in pairwise(words)
    )


def _is_key_file(value: str) -> bool:
    """Return whether a value is the path of a key: `/etc/ssl/host.pem`, `~/.ssh/id_ed25519`."""
    value = value.strip("\"'")
    return value.startswith(("/", "~/", "./")) and ("/.ssh/" in value or value.endswith(_KEY_FILES))


def _are_words(value: str) -> bool:
    """Return whether a value is a short word, or joined words: `loss`, `val_loss`, `layer.0/acc1`."""
    first, *others = value.strip("\"'").replace("/", "_").replace("-", "_").replace(".", "_").split("_")
    if not others:
        return first.isalpha() and first.islower() and len(first) <= _MAX_PLAIN_WORD_LENGTH
    return all(word.isalnum() and word == word.lower() and _digits(word) <= 1 for word in (first, *others))


def _digits(word: str) -> int:
    return sum(map(str.isdigit, word))


def _words(name: str) -> Iterator[str]:
    """Split a name into words, at punctuation and capitals.

    `HFToken`, `hf-token` and `HF_TOKEN` are hf, token.
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
