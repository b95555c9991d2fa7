"""The hook that builds the page into the package, with fake tools on PATH."""

from __future__ import annotations

import importlib.util
import stat
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]

FAKE_VITE = """\
import pathlib, sys
out = pathlib.Path(sys.argv[sys.argv.index("--outDir") + 1])
(out / "assets").mkdir(parents=True)
(out / "index.html").write_text(pathlib.Path("src/page.ts").read_text())
"""


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source tree with a page of one file, whose build copies that file."""
    root = tmp_path / "tree"
    for name, text in {
        "web/package.json": "{}",
        "web/src/page.ts": "one",
        "web/src/page.test.ts": "test",
        "web/vite.py": FAKE_VITE,
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of tools that is all there is on PATH: a Node that is new enough, and an npm."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    write_tool(folder / "node", NODE.format(version="v22.1.0", python=sys.executable))
    write_tool(folder / "npm", "exit 0")
    return folder


NODE = 'if [ "$1" = --version ]; then echo {version}; else shift; exec {python} vite.py "$@"; fi'


def write_tool(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_the_page_is_built_into_the_package_once(tree: Path, tools: Path, hook: ModuleType) -> None:
    index = tree / hook.STATIC / "index.html"
    assert not hook.is_current(tree)
    hook.build(tree)
    assert index.read_text() == "one"
    assert hook.is_current(tree)
    write_tool(tools / "npm", "exit 1")
    hook.build(tree)  # nothing to do, so nothing can fail


def test_changed_sources_are_rebuilt_but_changed_tests_are_not(
    tree: Path, tools: Path, hook: ModuleType
) -> None:
    hook.build(tree)
    (tree / "web/src/page.test.ts").write_text("another")
    (tree / "web/node_modules").mkdir()
    (tree / "web/node_modules/x.js").write_text("x")
    assert hook.is_current(tree)
    (tree / "web/src/page.ts").write_text("two")
    assert not hook.is_current(tree)
    hook.build(tree)
    assert (tree / hook.STATIC / "index.html").read_text() == "two"


def test_a_built_page_without_its_sources_is_used(tree: Path, hook: ModuleType) -> None:
    (tree / "web").rename(tree / "elsewhere")
    with pytest.raises(hook.PageError, match="are missing"):
        hook.build(tree)
    (tree / hook.STATIC).mkdir(parents=True)
    (tree / hook.STATIC / "index.html").write_text("built")
    hook.build(tree)


@pytest.mark.parametrize("version", ["v20.18.9", "v18.20.0", "what?"])
def test_an_old_node_counts_as_missing(
    tree: Path, tools: Path, hook: ModuleType, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tool(tools / "node", f"echo {version}")
    assert hook.node_on_path() is None
    monkeypatch.setattr(hook, "find_spec", lambda name: None)
    with pytest.raises(hook.PageError, match=r"Node 20\.19 or newer is required: .*`pip install"):
        hook.build(tree)


def test_node_is_installed_from_pypi_only_if_needed(tree: Path, tools: Path, hook: ModuleType) -> None:
    requested = SimpleNamespace(root=str(tree))
    assert hook.BuildPage.dependencies(requested) == [hook.MANUAL_PACKAGE]
    (tools / "node").unlink()
    assert hook.BuildPage.dependencies(requested) == [hook.MANUAL_PACKAGE, hook.NODE_PACKAGE]
    (tree / hook.STATIC).mkdir(parents=True)
    (tree / hook.STATIC / "index.html").write_text("built")
    (tree / hook.STATIC / hook.STAMP).write_text(hook.digest(tree))
    assert hook.BuildPage.dependencies(requested) == [hook.MANUAL_PACKAGE]


def test_a_failing_step_is_reported_with_its_output(tree: Path, tools: Path, hook: ModuleType) -> None:
    write_tool(tools / "npm", "echo no route to registry; exit 7")
    with pytest.raises(hook.PageError, match=r"(?s)npm ci .*failed with exit code 7.*no route to registry"):
        hook.build(tree)
    assert not (tree / hook.STATIC).exists()


def test_the_lock_file_names_no_addresses() -> None:
    assert '"resolved"' not in (ROOT / "web" / "package-lock.json").read_text()
