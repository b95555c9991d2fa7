"""Commit, branch and remote from git's files; changes from git, which may fail or hang."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from runvitals.monitoring.environment import git
from tests.patience import PATIENCE_S
from tests.processes import has_ended

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
ONE, TWO = "1" * 40, "2" * 40


def run(folder: Path, *arguments: str) -> str:
    environ = os.environ | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    identity = ["-c", "user.name=me", "-c", "user.email=me@here"]
    command = ["git", *identity, "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environ).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A real repository with one commit on the branch `main`."""
    folder = tmp_path / "project"
    folder.mkdir()
    run(folder, "init", "-q", "-b", "main")
    (folder / "train.py").write_text("print(1)\n")
    run(folder, "add", ".")
    run(folder, "commit", "-q", "-m", "Begin")
    return folder


@pytest.fixture(params=["installed", "old"])
def git_version(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The installed git, or one that refuses an option as versions before 2.26 do."""
    version: str = request.param
    if version == "old":
        refuses = 'case " $* " in *" --show-scope "*) exit 129;; esac'
        put_git_on_path(tmp_path / "bin", monkeypatch, f'{refuses}\nexec {shutil.which("git")} "$@"')
    return version


def put_git_on_path(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    folder.mkdir(exist_ok=True)
    program = folder / "git"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def planted(root: Path, files: dict[str, str]) -> str:
    """A repository written file by file, as other tools and older versions of git create it."""
    for path, content in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return str(root)


def test_no_repository(tmp_path: Path) -> None:
    assert git.facts(str(tmp_path)) == {}
    assert git.facts(str(tmp_path / "gone")) == {}


@needs_git
def test_real_repository_from_a_subfolder(repository: Path) -> None:
    (repository / "src").mkdir()
    run(repository, "remote", "add", "origin", "https://me:pw@host/me/project.git")
    assert git.facts(str(repository / "src")) == {
        "root": str(repository),
        "branch": "main",
        "commit": run(repository, "rev-parse", "HEAD"),
        "remote": "https://host/me/project.git",
    }


@needs_git
def test_packed_refs_and_a_branch_with_slashes(repository: Path) -> None:
    run(repository, "checkout", "-q", "-b", "feature/a/b")
    run(repository, "pack-refs", "--all")
    assert not (repository / ".git/refs/heads/feature/a/b").exists()
    facts = git.facts(str(repository))
    assert (facts["branch"], facts["commit"]) == ("feature/a/b", run(repository, "rev-parse", "HEAD"))


@needs_git
def test_worktree_has_its_own_branch_and_the_shared_remote(repository: Path, tmp_path: Path) -> None:
    run(repository, "remote", "add", "origin", "git@host:me/project.git")
    run(repository, "worktree", "add", "-q", str(tmp_path / "other"), "-b", "trial")
    facts = git.facts(str(tmp_path / "other"))
    assert facts["root"] == str(tmp_path / "other")
    assert (facts["branch"], facts["remote"]) == ("trial", "git@host:me/project.git")
    assert facts["commit"] == run(repository, "rev-parse", "HEAD")


@needs_git
def test_detached_head_has_a_commit_and_no_branch(repository: Path) -> None:
    run(repository, "checkout", "-q", "--detach")
    facts = git.facts(str(repository))
    assert facts["commit"] == run(repository, "rev-parse", "HEAD")
    assert "branch" not in facts


def test_branch_without_commits(tmp_path: Path) -> None:
    root = planted(tmp_path, {".git/HEAD": "ref: refs/heads/main\n", ".git/config": "[core]\n"})
    assert git.facts(root) == {"root": root, "branch": "main"}


def test_a_loose_ref_is_preferred_over_a_packed_one(tmp_path: Path) -> None:
    packed = f"# pack-refs with: peeled\n{TWO} refs/heads/main\n^{TWO}\n"
    files = {".git/HEAD": "ref: refs/heads/main\n", ".git/packed-refs": packed}
    assert git.facts(planted(tmp_path, files))["commit"] == TWO
    assert git.facts(planted(tmp_path, {".git/refs/heads/main": f"{ONE}\n"}))["commit"] == ONE


def test_submodule_with_a_relative_path(tmp_path: Path) -> None:
    planted(tmp_path, {".git/HEAD": f"{ONE}\n", ".git/modules/lib/HEAD": f"{TWO}\n"})
    planted(tmp_path, {"lib/.git": "gitdir: ../.git/modules/lib\n"})
    assert git.facts(str(tmp_path / "lib")) == {"root": str(tmp_path / "lib"), "commit": TWO}


def test_invalid_refs_leave_the_commit_out(tmp_path: Path) -> None:
    root = planted(tmp_path, {".git/HEAD": "ref: refs/heads/.invalid\n"})
    assert git.facts(root) == {"root": root}


def test_an_invalid_head_is_left_out(tmp_path: Path) -> None:
    root = planted(
        tmp_path, {".git/HEAD": "ref: refs/heads/main\n", ".git/refs/heads/main": "ref: elsewhere\n"}
    )
    assert git.facts(root) == {"root": root, "branch": "main"}


def test_the_branchs_remote_is_preferred_over_origin(tmp_path: Path) -> None:
    config = (
        '[remote "origin"]\n\turl = https://host/origin.git\n'
        '[remote "fork"]\n\tURL = "https://host/fork.git" ; mine\n\tfetch = +refs/*\n'
        '[branch "main"]\n\tremote = fork\n'
    )
    head = {".git/HEAD": "ref: refs/heads/main\n", ".git/config": config}
    assert git.facts(planted(tmp_path, head))["remote"] == "https://host/fork.git"
    assert git.facts(planted(tmp_path, {".git/HEAD": f"{ONE}\n"}))["remote"] == "https://host/origin.git"


@pytest.mark.parametrize(
    ("remote", "shown"),
    [
        ("https://host/me/it.git", "https://host/me/it.git"),
        ("https://me:pw@host/it.git", "https://host/it.git"),
        ("https://ghp_abc@host/it.git", "https://host/it.git"),
        ("https://host/it.git?private_token=abc#frag", "https://host/it.git"),
        ("ssh://git@host:22/it.git", "ssh://git@host:22/it.git"),
        ("ssh://me:pw@host/it.git", "ssh://host/it.git"),
        ("https://me:p#w@host/it.git", "https://host/it.git"),
        ("https://me:p?w@host/it.git?x=1", "https://host/it.git"),
        ("https://me:p w'@host/it.git", "https://host/it.git"),
        ("git@host:me/it.git", "git@host:me/it.git"),
        ("/srv/git/it.git", "/srv/git/it.git"),
    ],
)
def test_credentials_in_remotes_are_hidden(remote: str, shown: str) -> None:
    assert git.without_credentials(remote) == shown


@pytest.mark.usefixtures("git_version")
@needs_git
def test_dirty_means_a_tracked_file_has_changed(repository: Path) -> None:
    assert git.dirty(str(repository)) is False
    (repository / "checkpoint.pt").write_text("untracked\n")
    assert git.dirty(str(repository)) is False
    (repository / "train.py").write_text("print(2)\n")
    assert git.dirty(str(repository)) is True


@needs_git
def test_dirty_is_unknown_without_a_valid_repository(tmp_path: Path) -> None:
    assert git.dirty(str(tmp_path)) is None
    assert git.dirty(planted(tmp_path, {".git/HEAD": f"{ONE}\n"})) is None


@pytest.mark.usefixtures("git_version")
@needs_git
@pytest.mark.parametrize(
    ("settings", "is_dirty"),
    [
        ({"core.fsmonitor": "{}"}, False),
        ({"core.hooksPath": "hooks"}, False),
        ({"filter.evil.clean": "{}; cat"}, None),
        ({"filter.evil.process": "{}"}, None),
        ({"include.path": "../more"}, None),
        ({"extensions.worktreeConfig": "true"}, None),
    ],
)
def test_dirty_does_not_run_commands_of_the_repositorys_configuration(
    repository: Path, tmp_path: Path, settings: dict[str, str], is_dirty: bool | None
) -> None:
    command = f"touch {tmp_path / 'ran'}"
    (repository / ".git/info/attributes").write_text("* filter=evil\n")
    (repository / "more").write_text(f'[filter "evil"]\n\tclean = {command}; cat\n')
    shutil.copy(repository / "more", repository / ".git/config.worktree")
    (repository / "hooks").mkdir()
    (repository / "hooks/post-index-change").write_text(f"#!/bin/sh\n{command}\n")
    (repository / "hooks/post-index-change").chmod(0o755)
    for name, value in settings.items():
        run(repository, "config", name, value.format(command))
    os.utime(repository / "train.py", (1, 1))  # git has to look into it
    assert git.dirty(str(repository)) is is_dirty
    assert not (tmp_path / "ran").exists()


@pytest.mark.usefixtures("git_version")
@needs_git
def test_dirty_does_not_run_commands_of_a_submodules_configuration(repository: Path, tmp_path: Path) -> None:
    library = tmp_path / "library"
    shutil.copytree(repository, library)
    run(repository, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "lib")
    run(repository, "commit", "-q", "-m", "Add a library")
    run(repository / "lib", "config", "filter.evil.clean", f"touch {tmp_path / 'ran'}; cat")
    (repository / ".git/modules/lib/info/attributes").write_text("* filter=evil\n")
    os.utime(repository / "lib/train.py", (1, 1))
    assert git.dirty(str(repository)) is False
    assert not (tmp_path / "ran").exists()


@pytest.mark.usefixtures("git_version")
@needs_git
def test_dirty_does_not_fetch_what_a_partial_clone_lacks(repository: Path, tmp_path: Path) -> None:
    for name, value in {
        "core.repositoryformatversion": "1",
        "extensions.partialClone": "evil",
        "remote.evil.promisor": "true",
        "remote.evil.url": "ssh://host/it.git",
        "core.sshCommand": f"touch {tmp_path / 'ran'}; false",
        "protocol.ssh.allow": "always",
    }.items():
        run(repository, "config", name, value)
    tree = run(repository, "rev-parse", "HEAD^{tree}")
    (repository / ".git/objects" / tree[:2] / tree[2:]).unlink()
    assert git.dirty(str(repository)) is None
    assert not (tmp_path / "ran").exists()


@pytest.mark.usefixtures("git_version")
@needs_git
def test_filters_of_the_user_are_applied(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".gitconfig").write_text('[filter "mine"]\n\tclean = tr a-z A-Z\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (repository / ".git/info/attributes").write_text("* filter=mine\n")
    os.utime(repository / "train.py", (1, 1))
    assert git.dirty(str(repository)) is True


@pytest.mark.usefixtures("git_version")
@needs_git
def test_a_repository_does_not_replace_a_filter_of_the_user(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".gitconfig").write_text('[filter "mine"]\n\tclean = cat\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (repository / ".git/info/attributes").write_text("* filter=mine\n")
    run(repository, "config", "filter.mine.clean", f"touch {tmp_path / 'ran'}; cat")
    os.utime(repository / "train.py", (1, 1))
    assert git.dirty(str(repository)) is None
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("reference", ["pipe", "refs/heads/../../pipe", "refs/pipe"])
def test_a_pipe_is_not_waited_for(tmp_path: Path, reference: str) -> None:
    root = planted(tmp_path, {".git/HEAD": f"ref: {reference}\n", ".git/refs/heads/x": ONE})
    os.mkfifo(tmp_path / ".git/pipe")
    os.mkfifo(tmp_path / ".git/refs/pipe")
    os.mkfifo(tmp_path / ".git/config")
    assert "commit" not in git.facts(root)


def test_a_reference_is_below_refs(tmp_path: Path) -> None:
    files = {"secret": f"{TWO}\n", ".git/HEAD": "ref: refs/../../secret\n"}
    assert "commit" not in git.facts(planted(tmp_path, files))


def fake_git(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    put_git_on_path(folder, monkeypatch, script)
    planted(folder.parent, {".git/HEAD": f"{ONE}\n"})


def test_a_hanging_git_is_killed_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_git(tmp_path / "bin", monkeypatch, f"sleep 600 & echo $! > {tmp_path / 'child'}; wait")
    began = time.monotonic()
    for timeout_s in (0.5, 8.0, PATIENCE_S / 2):  # a busy machine may not have started the child by then
        assert git.dirty(str(tmp_path), timeout_s) is None
        if (tmp_path / "child").exists():
            break
    assert time.monotonic() - began < PATIENCE_S
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + PATIENCE_S
    while not has_ended(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert has_ended(child)


def test_endless_output_of_git_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = "while :; do echo ' M train.py'; done"
    fake_git(tmp_path / "bin", monkeypatch, f'case "$*" in *" config "*) exit 1;; esac; {endless}')
    assert git.dirty(str(tmp_path)) is True


def test_dirty_is_unknown_if_git_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_git(tmp_path / "bin", monkeypatch, "")
    (tmp_path / "bin/git").write_text("#!/no/such/interpreter\n")
    assert git.dirty(str(tmp_path)) is None


def test_a_git_in_the_working_directory_is_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_git(tmp_path / "bin", monkeypatch, f"touch {tmp_path / 'ran'}")
    monkeypatch.setenv("PATH", ".:")
    monkeypatch.chdir(tmp_path / "bin")
    git.dirty(str(tmp_path))
    assert not (tmp_path / "ran").exists()
