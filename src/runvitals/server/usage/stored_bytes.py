"""How much of the server's storage a team or user takes, by project."""

from __future__ import annotations

from runvitals.server.library.measured_library import ProjectStorage, RunStorage
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.samples.interface import SampleStore


def storage_of(
    store: SampleStore, metadata_store: MetadataStore, entity_id: int | None
) -> list[ProjectStorage]:
    """Return the projects of a team or user, the largest first."""
    places = metadata_store.accounts.storage_places(entity_id)
    lanes = {
        run_id: {writer.lane_id for writer in writers}
        for run_id, writers in metadata_store.writers.of_runs([place.run_id for place in places]).items()
    }
    sizes = store.sizes(sorted({lane for of_run in lanes.values() for lane in of_run}))
    projects: dict[int, ProjectStorage] = {}
    for place in places:
        project = projects.setdefault(place.project_id, ProjectStorage(place.project_id, place.project))
        samples = sum(sizes.get(lane, 0) for lane in lanes.get(place.run_id, ()))
        project.runs += 1
        project.samples += samples
        project.console += place.console_bytes
        project.trash += samples + place.console_bytes if place.in_trash else 0
    for project_id, files in metadata_store.accounts.file_storage(entity_id).items():
        if project_id in projects:  # otherwise its first run arrived between the two queries
            project = projects[project_id]
            project.files, project.media, project.artifacts = files.files, files.media, files.artifacts
            project.trash += files.trash
    for row in metadata_store.accounts.report_files.storage(entity_id):
        project = projects.setdefault(row.project_id, ProjectStorage(row.project_id, row.project))
        project.reports += row.bytes
        project.trash += row.trash
    return sorted(projects.values(), key=lambda project: (-project.bytes, project.project))


def run_storage_of(
    store: SampleStore, metadata_store: MetadataStore, entity_id: int | None, project_id: int
) -> list[RunStorage]:
    """Return the runs of a project, the largest first."""
    places = metadata_store.accounts.run_storage(entity_id, project_id)
    writers = metadata_store.writers.of_runs([place.run_id for place in places])
    lanes = {run_id: {writer.lane_id for writer in of_run} for run_id, of_run in writers.items()}
    sizes = store.sizes(sorted({lane for of_run in lanes.values() for lane in of_run}))
    runs = [
        RunStorage(place, sum(sizes.get(lane, 0) for lane in lanes.get(place.run_id, ()))) for place in places
    ]
    return sorted(runs, key=lambda run: (-run.bytes, run.place.uid))
