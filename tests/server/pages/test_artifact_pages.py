"""Artifacts and sweeps in a real browser, and the addresses that clients of wandb and MLflow print."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

import runvitals
from runvitals.cli import main
from runvitals.server.sweeps.storage.runs import RunOutcome
from tests.patience import PATIENCE_S
from tests.server.browser import Browser, keep_picture
from tests.server.doors.wandb.conftest import UPSERT
from tests.server.pages.test_account_pages import check, fill
from tests.server.pages.test_page import browser, static  # noqa: F401
from tests.server.pages.test_shared_page import click, shown
from tests.server.serving import Served, serving
from tests.server.test_build import hook  # noqa: F401


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, static: str) -> Iterator[Served]:  # noqa: F811
    """A server with a run that logged two versions and used one, and with runs of other clients."""
    folder = str(tmp_path_factory.mktemp("data"))
    with serving(tmp_path_factory.mktemp("server"), static=static) as served:
        with runvitals.init(project="digits", id="trained", dir=folder, mode="offline", reinit=True) as run:
            for rows, alias in ((1, "small"), (2, "large")):
                artifact = runvitals.Artifact("mnist", "dataset", "handwritten digits")
                for number in range(rows):
                    with artifact.new_file(f"train/part-{number}.txt") as file:
                        file.write("content " * 1000)
                artifact.add_reference("s3://bucket/a-long-path/raw.tar")
                run.log_artifact(artifact, aliases=[alias])
            run.use_artifact("mnist:small")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("RUNVITALS_SERVER", served.url)
            assert main(["sync", "trained", "--dir", folder, "--to", served.url]) == 0
        for project in ("digits", "cars"):
            variables = {"name": "same", "project": project, "entity": "main", "host": "node1"}
            body = {"query": UPSERT, "variables": variables | {"displayName": f"of {project}"}}
            httpx.post(f"{served.url}/graphql", json=body, timeout=PATIENCE_S).raise_for_status()
        yield served


@pytest.fixture(scope="module")
def sweep(served: Served) -> str:
    """A sweep of three runs, of which one waits for its agent."""
    store = served.metadata_store
    configuration = {
        "method": "random",
        "metric": {"name": "loss"},
        "parameters": {"lr": {"min": 0.1, "max": 0.9}, "opt": {"values": ["adam", "sgd"]}},
    }
    path = f"{served.url}/api/v1/projects/digits/sweeps"
    sent = {"configuration": configuration, "name": "rates"}
    name = str(httpx.post(path, json=sent, timeout=PATIENCE_S).json()["id"])
    sweep = store.sweeps.sweeps.named(store.projects.id("digits"), name)
    assert sweep is not None
    agent = store.sweeps.agents.add(sweep.id, "node1", 1)
    for index, (opt, run) in enumerate((("adam", "trained"), ("sgd", "same"), ("sgd", None))):
        parameters = {"lr": 0.1 + index / 4, "opt": opt}
        assigned = store.sweeps.runs.assign(sweep.id, index, parameters, agent.id, 1)
        assert assigned is not None
        if run is not None:
            run_id = store.runs.places(run)[0].run_id
            store.sweeps.runs.begin(sweep.id, assigned.run_name, run_id, 1)
            store.sweeps.runs.end({assigned.id: RunOutcome(0.5 - index / 10, None)})
    return name


@pytest.fixture
def page(browser: Browser, served: Served) -> Browser:  # noqa: F811
    browser.base = served.url
    browser.resize(1280, 800)
    return browser


def opened(page: Browser, path: str, width: int, dark: bool) -> None:
    """The page at a path; on a phone also without what is hard to read or to operate."""
    page.resize(width, 900, dark)
    if width > 390:
        page.open(path)
    else:
        check(page, path)


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_artifacts_of_a_run_and_their_files(page: Browser, width: int, dark: bool) -> None:
    opened(page, "/runs/trained/artifacts", width, dark)
    shown(page, "mnist:v1")
    shown(page, "Used")
    click(page, "button", "3 files")
    shown(page, "train/part-1.txt")
    shown(page, "s3://bucket/a-long-path/raw.tar")
    href = page.evaluate("document.querySelector('main a[download]').href")
    assert httpx.get(href, timeout=PATIENCE_S).text == "content " * 1000


@pytest.mark.parametrize(("width", "dark"), [(1280, True), (390, False)])
def test_the_artifacts_of_a_project(page: Browser, width: int, dark: bool) -> None:
    opened(page, "/projects/digits?artifacts=1", width, dark)
    click(page, "main table a", "mnist")
    shown(page, "mnist:v0")
    shown(page, "large")
    for days, said in (
        ("30", "Versions are deleted 30 days after they were logged"),
        ("", "Versions are kept"),
    ):
        click(page, "main button", "Change")
        keep_picture(page, f"time-to-live-{width}")
        fill(page, "Days", days, "dialog")
        click(page, "dialog button", "Save")
        shown(page, said, "main")
        keep_picture(page, f"versions-{days or 'kept'}-{width}")
    page.evaluate("history.back()")
    shown(page, "Versions")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_a_sweep(page: Browser, sweep: str, width: int, dark: bool) -> None:
    opened(page, "/projects/digits?sweeps=1", width, dark)
    click(page, "main table a", "rates")
    shown(page, "Lowest loss")
    assert page.text("tr.best").split()[0] == "of"  # the run `of digits`
    page.wait("document.querySelectorAll('main svg path').length === 2")
    shown(page, "not begun")
    shown(page, f"runvitals agent digits/{sweep}")
    click(page, "thead button", "lr")
    page.wait("document.querySelector('th[aria-sort=ascending]').textContent.includes('lr')")
    click(page, "button", "Pause")
    shown(page, "paused")
    click(page, "button", "Resume")
    page.wait("[...document.querySelectorAll('button')].some(e => e.innerText === 'Pause')")
    click(page, "button", "Delete …")
    shown(page, "runs stay")
    if width == 390:
        check(page, page.evaluate("location.pathname + location.search"))


@pytest.mark.parametrize(
    ("path", "text", "leads_to"),
    [
        ("/main/digits/runs/same", "of digits", "/runs/same"),
        ("/main/cars/runs/same", "of cars", "/runs/same-"),
        ("/main/digits/runs/trained/artifacts", "mnist:v1", "/runs/trained/artifacts"),
        ("/main/cars", "cars", "/projects/cars"),
    ],
)
def test_the_links_that_wandb_prints(page: Browser, path: str, text: str, leads_to: str) -> None:
    page.open(path)
    shown(page, text, "body")
    assert page.evaluate("location.pathname").startswith(leads_to)


def test_the_links_that_mlflow_prints(page: Browser, served: Served) -> None:
    api = f"{served.url}/api/2.0/mlflow"
    made = httpx.post(f"{api}/experiments/create", json={"name": "tuned"}, timeout=PATIENCE_S).json()
    experiment = {"experiment_id": made["experiment_id"], "run_name": "of mlflow"}
    run = httpx.post(f"{api}/runs/create", json=experiment, timeout=PATIENCE_S).json()["run"]["info"]
    page.open(f"/#/experiments/{made['experiment_id']}/runs/{run['run_id']}")
    shown(page, "of mlflow", "h1")
    assert page.evaluate("location.href") == f"{served.url}/runs/{run['run_id']}"
    page.open(f"/#/experiments/{made['experiment_id']}")
    page.wait("location.pathname === '/projects/tuned'")
