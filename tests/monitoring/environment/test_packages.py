from __future__ import annotations

from pathlib import Path

from runvitals.monitoring.environment.packages import MAX_PACKAGES, packages


def test_versions_by_normalized_name(tmp_path: Path) -> None:
    for name in (
        "numpy-2.4.6.dist-info",
        "typing_extensions-4.15.0.dist-info",
        "torch-2.13.0+cu130.dist-info",
        "PyYAML-6.0.3-py3.11.egg-info",
        "old-1!2.0rc1.egg-info",
    ):
        (tmp_path / name).mkdir()
    assert packages([str(tmp_path)]) == {
        "numpy": "2.4.6",
        "old": "1!2.0rc1",
        "pyyaml": "6.0.3",
        "torch": "2.13.0+cu130",
        "typing-extensions": "4.15.0",
    }


def test_the_first_folder_counts_and_missing_ones_are_ignored(tmp_path: Path) -> None:
    for folder, version in (("own", "2"), ("system", "1")):
        (tmp_path / folder / f"numpy-{version}.dist-info").mkdir(parents=True)
    folders = [str(tmp_path / name) for name in ("none", "own", "system")]
    assert packages(folders) == {"numpy": "2"}


def test_other_files_are_no_packages(tmp_path: Path) -> None:
    for name in (
        "numpy",
        "numpy.dist-info",
        "-1.dist-info",
        "a b-1.dist-info",
        "x\x1b[31m-1.dist-info",
        "é-1.dist-info",
    ):
        (tmp_path / name).mkdir()
    (tmp_path / f"{'n' * 190}-1.dist-info").mkdir()
    assert packages([str(tmp_path)]) == {}


def test_the_number_is_limited(tmp_path: Path) -> None:
    for number in range(MAX_PACKAGES + 1):
        (tmp_path / f"p{number}-1.dist-info").touch()
    assert len(packages([str(tmp_path)])) == MAX_PACKAGES
