"""Passwords in options without a telling name: `mysql -pX`, `sshpass -p X`, `curl -u me:X`.

For most programs `-p` is a port. So an option counts only after the name of a program for which it is a
password, and within the same command.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_BLANKS = frozenset(" \t\r\n\"'<>`")
_QUOTES = frozenset("\"'")
_COMMAND_ENDS = frozenset(";|&\n")
_PUNCTUATION = frozenset(",:[](){}")


class _PasswordProgram:
    """The password options of a program.

    Args:
        options: the options that may contain a password.
        separate: the value may also be the next word. `mysql -p X` prompts for the password; X is a database.
        sign: the sign before the password in the value: `user:password`.
        flags: letters without a value that may precede the option's letter, as in `curl -sSu`.
        leads: another command follows, with its own options.
    """

    __slots__ = ("flags", "leads", "options", "separate", "sign")

    def __init__(
        self, *options: str, separate: bool = True, sign: str = "", flags: str = "", leads: bool = False
    ) -> None:
        self.options = frozenset(options)
        self.separate = separate
        self.sign = sign
        self.flags = frozenset(flags)
        self.leads = leads

    def value_at(self, word: str) -> int:
        """Return the start of an option's value in a word.

        The word's length if it is only the option; 0 if it is another word.
        """
        name, equals, _ = word.partition("=")
        if name in self.options:
            return len(name) + len(equals)
        if word.startswith("--") or not word.startswith("-"):
            return 0
        at = 1
        while at < len(word) and word[at] in self.flags:
            at += 1
        return at + 1 if f"-{word[at : at + 1]}" in self.options else 0

    def password_at(self, word: str, value_at: int) -> int:
        """Return the start of the password within a value; -1 if it has none."""
        sign_at = word.find(self.sign, value_at)
        begin = sign_at + len(self.sign)
        return begin if sign_at >= 0 and begin < len(word) else -1


_MYSQL = _PasswordProgram("-p", separate=False)
_MONGO = _PasswordProgram("-p")
_LOGIN = _PasswordProgram("-p")
_REDIS = _PasswordProgram("-a")
_CLIENTS = {
    **dict.fromkeys(
        (
            "mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlshow", "mysqlcheck", "mysqlpump",
            "mysqlslap", "mariadb", "mariadb-dump", "mariadb-admin", "mariadb-import", "mariadb-show",
            "mariadb-check",
        ),
        _MYSQL,
    ),
    **dict.fromkeys(("mongo", "mongosh", "mongodump", "mongorestore", "mongoimport", "mongoexport"), _MONGO),
    **dict.fromkeys(("redis-cli", "valkey-cli", "keydb-cli"), _REDIS),
    **dict.fromkeys(("ldapsearch", "ldapmodify", "ldapadd"), _PasswordProgram("-w")),
    **dict.fromkeys(("sqlcmd", "bcp"), _PasswordProgram("-P")),
    **dict.fromkeys(("7z", "7za", "7zr", "7zz", "rar", "unrar"), _PasswordProgram("-p", separate=False)),
    **dict.fromkeys(("zip", "unzip", "ipmitool"), _PasswordProgram("-P")),
    **dict.fromkeys(("cqlsh", "rdesktop", "twine", "useradd"), _PasswordProgram("-p")),
    **dict.fromkeys(("snmpget", "snmpwalk", "snmpset"), _PasswordProgram("-A", "-X")),
    **dict.fromkeys(("http", "https", "xh"), _PasswordProgram("-a", "--auth", sign=":")),
    "lftp": _PasswordProgram("-u", "--user", sign=","),
    "sshpass": _PasswordProgram("-p", leads=True),
    "smbclient": _PasswordProgram("-U", "--user", sign="%"),
    "curl": _PasswordProgram("-u", "-U", "--user", "--proxy-user", sign=":", flags="sSfgGiIjJkLnNOqRv46#"),
}  # fmt: skip
# `docker login -p X`, but `docker run -p 80:80`.
_LOGIN_PROGRAMS = frozenset(
    ("docker", "podman", "nerdctl", "buildah", "skopeo", "helm", "oras", "crane", "az", "oc", "cf")
)
_NAMES = (*_CLIENTS, "login")


class PasswordOptions:
    """Reads the words of a command line one by one."""

    __slots__ = ("_may_log_in", "_program", "expects_value")

    def __init__(self) -> None:
        self._program: _PasswordProgram | None = None
        self.expects_value = self._may_log_in = False

    def end_command(self) -> None:
        """Forget the program, since another command follows."""
        self._program = None
        self.expects_value = self._may_log_in = False

    def read(self, word: str) -> int:
        """Return the start of a password in the next word; -1 if there is none.

        >>> options = PasswordOptions()
        >>> [options.read(word) for word in ("mysql", "-psecret1", "-P", "3306")]
        [-1, 2, -1, -1]
        """
        if word and _COMMAND_ENDS.issuperset(word):
            self.end_command()
            return -1
        program = self._program
        if program is not None:
            if self.expects_value and not word.startswith("--"):
                self.expects_value = False
                self._program = None if program.leads else program
                return program.password_at(word, 0)
            value_at = program.value_at(word)
            self.expects_value = value_at == len(word) and program.separate
            if 0 < value_at < len(word):
                self._program = None if program.leads else program
                return program.password_at(word, value_at)
            if program.leads and not word.startswith("-"):
                self._program = None
        name = word.rpartition("/")[2].rpartition("(")[2]
        self._may_log_in = self._may_log_in or name in _LOGIN_PROGRAMS
        options = _LOGIN if name == "login" and self._may_log_in else _CLIENTS.get(name)
        if options is not None:
            self._program, self.expects_value = options, False
        return -1


def passwords(value: str) -> Iterator[tuple[int, int]]:
    """(start, end) of each such password in free text.

    >>> list(passwords("sshpass -p 'a b' ssh -p 22 host"))
    [(12, 15)]
    """
    if not any(name in value for name in _NAMES):
        return
    options = PasswordOptions()
    at, size = 0, len(value)
    while at < size:
        if value[at] in _BLANKS or value[at] in _COMMAND_ENDS:
            if value[at] in _COMMAND_ENDS:
                options.end_command()
            at += 1
            continue
        start, end = at, _word_end(value, at)
        if options.expects_value and (not at or value[at - 1] not in _QUOTES):
            end = _shell_word_end(value, at)  # me:'secret'
        at = end
        word = value[start:end].rstrip(";")
        if _PUNCTUATION.issuperset(word):
            continue  # between the strings of a list
        begin = options.read(word)
        if begin >= 0:
            begin += start
            begin, end = _password(value, start, begin)
            at = max(at, end)
            if end > begin:
                yield begin, end
        if value[at - 1] == ";":
            options.end_command()


def _word_end(value: str, start: int) -> int:
    """Return the end of a word.

    For an option with a quoted value, such as `-p'a b'`, after the closing quote.
    """
    end = start
    while end < len(value) and value[end] not in _BLANKS and value[end] not in "|&":
        end += 1
    is_quoted = start > 0 and value[start - 1] in _QUOTES
    if value[start] == "-" and value[end : end + 1] in _QUOTES and not is_quoted:
        return value.find(value[end], end + 1) + 1 or end
    return end


def _password(value: str, start: int, begin: int) -> tuple[int, int]:
    """(start, end) of the password that begins in the word at `start`, without quotes around it."""
    quote = value[start - 1] if start else ""
    if quote in _QUOTES and quote:
        closing = value.find(quote, begin)
        return begin, len(value) if closing < 0 else closing
    end = before_closing(value, start, _shell_word_end(value, start))
    if value[begin] in _QUOTES and value.find(value[begin], begin + 1) == end - 1:
        return begin + 1, end - 1  # -p'secret'
    if value[end - 1] in _QUOTES and value.find(value[end - 1], start, begin) >= 0:
        return begin, end - 1  # --user='me:secret'
    return begin, end


def before_closing(value: str, start: int, end: int) -> int:
    """Return the end of a word without brackets that close a subshell: `(curl -u me:X)`.

    Without an open bracket before the word, they belong to the password.
    """
    if value[end - 1] == ")":
        still_open = value.count("(", 0, start) - value.count(")", 0, start)
        while end > start and value[end - 1] == ")" and still_open > 0:
            end, still_open = end - 1, still_open - 1
    return end


def _shell_word_end(value: str, begin: int) -> int:
    """Return the end of a word as a shell reads it, with quoted parts such as `a'b c'`."""
    at = begin
    while at < len(value):
        if value[at] in _QUOTES:
            at = value.find(value[at], at + 1) + 1 or at + 1
        elif value[at] in _BLANKS or value[at] in "|&":
            break
        else:
            at += 1
    return at - (at > begin and value[at - 1] == ";")
