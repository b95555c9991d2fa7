"""The git commit that a program runs from.

Commit, branch and remote are read from the files under .git. The git program is run only to find out whether
the files differ from the commit, which requires the index.
"""

from __future__ import annotations

import os
import select
import time
from _signal import SIGKILL

from runvitals.monitoring.collectors.base import read_text
from runvitals.monitoring.environment.redaction import HIDDEN, url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_DIRTY_TIMEOUT_S = 5.0
_FURTHER_PATHS = ("/usr/bin", "/usr/local/bin", "/opt/homebrew/bin")
_HEX = frozenset("0123456789abcdef")
_FILTERS = ("--name-only", "--get-regexp", r"^filter\.")
_SCOPES_OF_USER = {b"system", b"global"}
_NO_MATCH = 1
_UNKNOWN_OPTION = 129
# An empty name, because git before 2.36 takes `false` for the name of a command.
_OPTIONS = ("--no-optional-locks", "-c", "core.fsmonitor=")
_STATUS = ("status", "--porcelain", "--untracked-files=no", "--ignore-submodules=dirty")
# Git gets objects that a partial clone lacks from its remote, by a command that the repository names.
_ENVIRONMENT = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1"}
_MAX_OUTPUT = 65536


class Repository:
    """The folders of a git working tree.

    Args:
        root: the working tree.
        folder: its git folder, which has HEAD.
        common: the folder shared by all worktrees of the repository: refs, configuration.
    """

    __slots__ = ("common", "folder", "root")

    def __init__(self, root: str, folder: str, common: str) -> None:
        self.root = root
        self.folder = folder
        self.common = common


def facts(cwd: str) -> dict[str, str]:
    """Return the checkout: root, commit, branch (absent if detached), remote; {} outside of a repository.

    >>> facts("/home/me/project/src")
    {'root': '/home/me/project', 'commit': '0ec4261…', 'branch': 'main', 'remote':
    'https://host/me/project.git'}
    """
    repository = find(cwd)
    if repository is None:
        return {}
    git_facts = {"root": repository.root}
    head = _read(f"{repository.folder}/HEAD") or ""
    if head.startswith("ref: "):
        reference = head[5:].strip()
        if reference != "refs/heads/.invalid":  # the placeholder of repositories that use reftable
            git_facts["branch"] = reference.removeprefix("refs/heads/")
        head = _resolve(repository, reference) or ""
    if len(head) in (40, 64) and _HEX.issuperset(head):
        git_facts["commit"] = head
    remote = _remote(repository, git_facts.get("branch", ""))
    if remote:
        git_facts["remote"] = without_credentials(remote)
    return git_facts


def find(cwd: str) -> Repository | None:
    """Return the repository whose working tree contains a folder, or None."""
    root = cwd
    while root.startswith("/"):
        folder = f"{root.rstrip('/')}/.git"
        if os.path.isfile(folder):
            # In a worktree or a submodule, .git is a file with the path of the git folder.
            pointer = _read(folder) or ""
            folder = (
                _join(root, pointer.removeprefix("gitdir:").strip()) if pointer.startswith("gitdir:") else ""
            )
        if folder and os.path.isfile(f"{folder}/HEAD"):
            common = _read(f"{folder}/commondir")
            return Repository(root, folder, _join(folder, common.strip()) if common else folder)
        if root == "/":
            return None
        root = os.path.dirname(root)
    return None


def dirty(cwd: str, timeout_s: float = _DIRTY_TIMEOUT_S) -> bool | None:
    """Return whether a tracked file differs from the commit.

    None outside a repository, if git fails or is slow, or if the repository's configuration has filters,
    which are commands that git would run.

    Untracked files do not count: most are the training's own output; nor do changes within submodules. Git
    starts no command of the repository's configuration (hooks, filters, helpers, transports), changes
    nothing, and is killed with its children at the timeout.
    """
    program = _git_program()
    if program is None or find(cwd) is None or not hasattr(os, "posix_spawn"):
        return None
    deadline_s = time.monotonic() + timeout_s
    if not _has_only_filters_of_user([program, "-C", cwd, "config"], deadline_s):
        return None
    output, status = _output([program, *_OPTIONS, "-C", cwd, *_STATUS], deadline_s, 1)
    if output:
        return True
    return False if status == 0 else None


def _has_only_filters_of_user(config: list[str], deadline_s: float) -> bool:
    """Return whether the repository's own configuration is known to have no filters.

    Args:
        config: the command `git config`, in the repository.
        deadline_s: when to give up, on the monotonic clock.
    """
    output, status = _output([*config, "--show-scope", *_FILTERS], deadline_s)
    if status != _UNKNOWN_OPTION:
        scopes = {line.partition(b"\t")[0] for line in output.splitlines()}
        return status in (0, _NO_MATCH) and scopes <= _SCOPES_OF_USER
    # Git before 2.26. It lists the filters of the system first, then those of the user.
    output, status = _output([*config, *_FILTERS], deadline_s)
    if status != 0:
        return status == _NO_MATCH
    scopes_of_user = ("--system", "--global")
    of_user = [_output([*config, scope, "--includes", *_FILTERS], deadline_s)[0] for scope in scopes_of_user]
    return output == b"".join(of_user)


def _output(arguments: list[str], deadline_s: float, most: int = _MAX_OUTPUT) -> tuple[bytes, int | None]:
    """Return the first `most` bytes that git prints, and its wait status as an exit code.

    None if there is none.

    Git is killed when it has printed that much, and at the deadline.
    """
    environ = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_CONFIG_HOME") if name in os.environ}
    read_end, write_end = os.pipe()
    try:
        pid = os.posix_spawn(
            arguments[0],
            arguments,
            {**environ, **_ENVIRONMENT},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, write_end, 1),  # first, because it may be descriptor 0 or 2
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0),
            ],
            setpgroup=0,
        )
    except OSError:
        os.close(read_end)
        return b"", None
    finally:
        os.close(write_end)
    try:
        return _read_output(pid, read_end, deadline_s, most)
    finally:
        os.close(read_end)


def without_credentials(remote: str) -> str:
    """Return a remote's URL without user, password, query and fragment; `git@host:path` is unchanged.

    >>> without_credentials("https://me:abc@host/me/it.git?token=abc")
    'https://host/me/it.git'
    """
    remote = url(remote)  # first: a password may have a `?` or `#`
    scheme, sign, rest = remote.partition("://")
    user, at, address = rest.rpartition("@")
    if sign and at and HIDDEN in user:
        remote = f"{scheme}://{address}"
    return remote.partition("#")[0].partition("?")[0]


def _read_output(pid: int, read_end: int, deadline_s: float, most: int) -> tuple[bytes, int | None]:
    poll = select.poll()
    poll.register(read_end, select.POLLIN)
    output, is_open = b"", True
    while is_open and len(output) < most:
        if not poll.poll(max(0.0, (deadline_s - time.monotonic()) * 1000)):
            break
        piece = os.read(read_end, most - len(output))
        output, is_open = output + piece, bool(piece)
    if is_open:
        try:
            os.killpg(pid, SIGKILL)
        except (ProcessLookupError, PermissionError):  # macOS reports EPERM for a group that has just ended
            pass
    status = _wait(pid, max(deadline_s, time.monotonic() + 1.0))
    return output, None if status is None else os.waitstatus_to_exitcode(status)


def _wait(pid: int, deadline_s: float) -> int | None:
    """The wait status, or None for a process that even SIGKILL does not end in time, as on a hung NFS."""
    while time.monotonic() < deadline_s:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.005)
    return None


def _git_program() -> str | None:
    """Return the absolute path of git.

    Relative folders in PATH are not searched: they may contain anything.
    """
    for folder in (*os.environ.get("PATH", "").split(":"), *_FURTHER_PATHS):
        program = f"{folder}/git"
        if folder.startswith("/") and os.access(program, os.X_OK) and os.path.isfile(program):
            return program
    return None


def _resolve(repository: Repository, reference: str) -> str | None:
    """Return the commit of a branch, from its file or from packed-refs; None if it has no commits yet."""
    if not reference.startswith("refs/") or ".." in reference.split("/"):
        return None  # any file
    loose = _read(f"{repository.folder}/{reference}") or _read(f"{repository.common}/{reference}")
    if loose is not None:
        return loose.strip()
    if not os.path.isfile(f"{repository.common}/packed-refs"):
        return None
    with open(f"{repository.common}/packed-refs", encoding="utf-8", errors="replace") as packed:
        for line in packed:  # may have megabytes, more than read_text reads
            commit, _, name = line.rstrip("\n").partition(" ")
            if name == reference:
                return commit
    return None


def _remote(repository: Repository, branch: str) -> str | None:
    """Return the URL of the branch's remote, else of origin, else of the first."""
    urls: dict[str, str] = {}
    remote = "origin"
    for section, name, value in _settings(_read(f"{repository.common}/config") or ""):
        kind, _, subject = section.partition(" ")
        subject = subject.strip('"')
        if kind == "remote" and name == "url":
            urls.setdefault(subject, value)
        elif kind == "branch" and subject == branch and name == "remote":
            remote = value
    return urls.get(remote) or urls.get("origin") or next(iter(urls.values()), None)


def _read(path: str) -> str | None:
    """Return the text of a small file, or None. A FIFO would be waited for."""
    return read_text(path) if os.path.isfile(path) else None


def _settings(text: str) -> Iterator[tuple[str, str, str]]:
    """(section, name, value) of a git configuration file: `[remote "origin"]`, `url = https://…`."""
    section = ""
    for line in text.split("\n"):
        line = line.strip()
        if line.startswith("["):
            section = line[1:].partition("]")[0]
        elif line and line[0] not in "#;":
            name, _, value = line.partition("=")
            value = value.strip()
            if value.startswith('"'):
                value = value[1:].partition('"')[0]
            else:
                value = value.partition(" #")[0].partition(" ;")[0].rstrip()
            yield section, name.strip().lower(), value


def _join(folder: str, path: str) -> str:
    return path if path.startswith("/") else os.path.normpath(f"{folder}/{path}")
