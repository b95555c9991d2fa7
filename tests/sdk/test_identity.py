"""Ids and default names of runs, the same in every rank of a job."""

from __future__ import annotations

import itertools
import os
import re
import threading
from pathlib import Path

import pytest

from runvitals.journal import frames
from runvitals.model.errors import UnknownRun
from runvitals.readers.journals.run_handle import find_run, open_run
from runvitals.sdk.identity import identify, new_run_id, short_id
from runvitals.sdk.run_names import free_name, names_of
from tests.sdk.runs import Journals, Start, finished

SHORT = re.compile("[a-z][0-9a-z]{7}")
WORDS = re.compile("[a-z]+-[a-z]+-[1-9][0-9]{0,2}")
VALUES = {"run_id": None, "name": None, "project": "digits"}
STEP = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_NTASKS": "2", "SLURM_JOB_NAME": "bert"}
UUID = "8a2e7bd0-8a0a-4c76-9d5d-7f0a3f7c0e11"
PRINT = """
    import runvitals
    run = runvitals.init()
    print(run.id, run.name)
    run.finish()
"""


def test_ids_are_short_and_unique() -> None:
    keys = [f"launcher-7a60e07a-fb1f-4d4a-9a3c-{number:012x}-{number}" for number in range(10_000)]
    assert len({short_id(key) for key in keys}) == len(keys)
    assert all(SHORT.fullmatch(short_id(key)) for key in keys[:100])
    assert all(SHORT.fullmatch(new_run_id()) for _ in range(100))
    assert short_id("slurm-7.0") == "mahg1kqy", "on every node, with every version"


def test_names_are_readable_and_unique() -> None:
    names = [next(names_of(new_run_id())) for _ in range(2000)]
    assert all(map(WORDS.fullmatch, names))
    assert len(set(names)) > 1990
    assert len({name.rpartition("-")[0] for name in names}) > 1500


def test_names_are_unique_within_a_project(tmp_path: Path) -> None:
    first = free_name("run1", "digits", str(tmp_path))
    assert free_name("run1", "digits", str(tmp_path)) == first
    [folder] = (tmp_path / "names").iterdir()
    for name in itertools.islice(names_of("run2"), 3):
        (folder / name).symlink_to("another-run")
    assert free_name("run2", "digits", str(tmp_path)) == list(itertools.islice(names_of("run2"), 4))[3]
    assert free_name("run2", "faces", str(tmp_path)) == next(names_of("run2"))


def test_concurrent_runs_get_different_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runvitals.sdk.run_names._number_of", lambda text: len(text.partition(".")[2]) % 7)
    names: list[str] = []
    threads = [
        threading.Thread(target=lambda n=n: names.append(free_name(f"run{n}", "p", str(tmp_path))))
        for n in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(names)) == 2


def test_unwritable_folder_still_gives_a_name(tmp_path: Path) -> None:
    (tmp_path / "names").write_text("in the way")
    assert WORDS.fullmatch(free_name("run1", "digits", str(tmp_path)))


def test_ranks_of_a_job_derive_the_same_id_and_name(tmp_path: Path) -> None:
    ranks = [identify(VALUES, STEP | {"SLURM_PROCID": rank}) for rank in ("0", "1")]
    assert ranks[0].run_id == short_id("slurm-7.0")
    assert ranks[0].job == {"launcher": "slurm", "key": "slurm-7.0", "name": "bert-7"}
    assert [rank.default_name("p", str(tmp_path)) for rank in ranks] == ["bert-7", "bert-7-2"], (
        "as the second run of one process"
    )
    assert ranks[1].run_id == f"{ranks[0].run_id}-2"


def test_ranks_of_lightning_join_the_run_that_its_script_has_open(monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {"LOCAL_RANK": "1", "NODE_RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
    monkeypatch.setenv("RUNVITALS_OPEN_RUN", f"{os.getppid()} abc /data")
    identity = identify({"run_id": None}, environ)
    assert (identity.run_id, identity.shared, identity.ranks["rank"]) == ("abc", True, 1)
    monkeypatch.setenv("RUNVITALS_OPEN_RUN", f"{os.getpid()} abc /data")
    assert identify({"run_id": None}, environ).run_id != "abc"


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({"RANK": "0", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "exp-17"}, "exp-17"),
        ({"RANK": "0", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "456"}, None),
        ({"RANK": "0", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": UUID}, None),
        ({"RANK": "0", "WORLD_SIZE": "2", "AZUREML_RUN_ID": "brave_sun_1"}, "brave_sun_1"),
        (STEP | {"SLURM_PROCID": "0", "SLURM_ARRAY_JOB_ID": "5", "SLURM_ARRAY_TASK_ID": "3"}, "bert-5_3"),
        (STEP | {"SLURM_PROCID": "0", "SLURM_JOB_NAME": "a/b\x1b[31m"}, "a_b_[31m-7"),
        (
            {
                "RANK": "1", "WORLD_SIZE": "2", "KUBERNETES_SERVICE_HOST": "10.0.0.1",
                "MASTER_ADDR": "bert-9-master-0", "HOSTNAME": "bert-9-worker-0",
            },
            "bert-9",
        ),
    ],
)  # fmt: skip
def test_names_of_jobs(environ: dict[str, str], name: str | None) -> None:
    assert identify(VALUES, environ).job.get("name") == name


def test_ranks_of_a_node_share_id_and_name_and_record_the_job(train: Start, journals: Journals) -> None:
    job = {"WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "3"}
    ranks = [train(PRINT, **job, RANK=str(i), LOCAL_RANK=str(i)) for i in range(3)]
    outputs = {finished(rank)[1].strip() for rank in ranks}
    assert len(outputs) == 1
    run_id, name = outputs.pop().split()
    assert SHORT.fullmatch(run_id)
    assert WORDS.fullmatch(name)
    run = open_run(run_id, str(journals.directory))
    assert run.facts.name == name
    about = [r.value["run"] for r in journals.records(run_id) if r.type == frames.INFO and "run" in r.value]
    assert about[0]["job"]["launcher"] == "torch"
    assert short_id(about[0]["job"]["key"]) == run_id


def test_default_name_is_recorded_and_searchable(train: Start, journals: Journals) -> None:
    run_id, name = finished(train(PRINT))[1].split()
    assert SHORT.fullmatch(run_id)
    assert WORDS.fullmatch(name)
    assert open_run(name, str(journals.directory)).id == run_id
    with pytest.raises(UnknownRun):
        find_run("calm-otter-1000", str(journals.directory))


def test_explicit_name_takes_precedence(train: Start, journals: Journals) -> None:
    script = """
        import runvitals
        run = runvitals.init(id="run1", name={name!r})
        run.log({{"n": 1}})
        run.finish()
        print(run.name, run.step)
    """
    assert finished(train(script.format(name="mine")))[1].split() == ["mine", "1"]
    assert finished(train(script.format(name=None)))[1].split() == ["mine", "2"], "as it went on"
    assert open_run("run1", str(journals.directory)).facts.name == "mine"
