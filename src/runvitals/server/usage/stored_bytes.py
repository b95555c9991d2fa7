"""How much of the server's storage a team or user takes, by project."""

from __future__ import annotations

from runvitals.server.library.measured_library import ProjectStorage, RunStorage
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.samples.interface import SampleStore


def storage_of(
    store: SampleStore, metadata_store: MetadataStore, entity_id: int | None
) -> list[ProjectStorage]:
    """Return the projects of a team or user, the largest first."""
    runs = metadata_store.accounts.storage_places(entity_id)
    run_ids = [run.run_id for run in runs if run.run_id is not None]
    lanes = {
        run_id: {writer.lane_id for writer in writers}
        for run_id, writers in metadata_store.writers.of_runs(run_ids).items()
    }
    sizes = store.sizes(sorted({lane for of_run in lanes.values() for lane in of_run}))
    projects: dict[int, ProjectStorage] = {}
    for run in runs:
        project = projects.setdefault(run.project_id, ProjectStorage(run.project_id, run.project))
        project.trashed_ms = run.project_trashed_ms
        if run.run_id is None:
            continue
        samples = sum(sizes.get(lane, 0) for lane in lanes.get(run.run_id, ()))
        project.runs += 1
        project.samples += samples
        project.console += run.console_bytes
        project.note_time(run.started_ms, run.last_ms, run.read_day)
        if run.trashed_ms is not None:
            project.trash += samples + run.console_bytes
            project.trashed_runs.append(run.trashed_ms)
    _add_files(projects, metadata_store, entity_id)
    stored_projects = [
        project for project in projects.values() if project.started_ms is not None or project.bytes
    ]
    return sorted(stored_projects, key=lambda project: (-project.bytes, project.project))


def _add_files(
    projects: dict[int, ProjectStorage], metadata_store: MetadataStore, entity_id: int | None
) -> None:
    """Add the files of runs, artifacts and reports."""
    for project_id, files in metadata_store.accounts.file_storage(entity_id).items():
        if project_id in projects:  # otherwise it was made between the two queries
            project = projects[project_id]
            project.files, project.media, project.artifacts = files.files, files.media, files.artifacts
            project.trash += files.trash
    for artifacts in metadata_store.artifacts.collections.of_entity(entity_id):
        if artifacts.project_id in projects:
            project = projects[artifacts.project_id]
            project.note_time(artifacts.oldest_ms, artifacts.newest_ms, artifacts.read_day)
            project.expiring, project.expiring_bytes = artifacts.expiring, artifacts.expiring_bytes
            project.expires_ms = artifacts.expires_ms
    for row in metadata_store.accounts.report_files.storage(entity_id):
        project = projects.setdefault(row.project_id, ProjectStorage(row.project_id, row.project))
        project.reports += row.bytes
        project.trash += row.trash


def run_storage_of(
    store: SampleStore, metadata_store: MetadataStore, entity_id: int | None, project_id: int
) -> list[RunStorage]:
    """Return the runs of a project, the largest first."""
    stored_runs = metadata_store.accounts.run_storage(entity_id, project_id)
    writers = metadata_store.writers.of_runs([run.run_id for run in stored_runs])
    lanes = {run_id: {writer.lane_id for writer in of_run} for run_id, of_run in writers.items()}
    sizes = store.sizes(sorted({lane for of_run in lanes.values() for lane in of_run}))
    sized_runs = [
        RunStorage(run, sum(sizes.get(lane, 0) for lane in lanes.get(run.run_id, ()))) for run in stored_runs
    ]
    return sorted(sized_runs, key=lambda storage: (-storage.bytes, storage.run.uid))
