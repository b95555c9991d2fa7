"""Names of W&B's `Artifact` that ours does not have, and what to use instead."""

from __future__ import annotations

from typing import Final

ABSENT_NAMES: Final = {
    "new_draft": "a new Artifact of the same name; unchanged files are stored once",
    "get": "get_entry(name).download()",
    "checkout": "download(root)",
    "finalize": "run.log_artifact(artifact)",
    "manifest": "files()",
    "json_encode": "files()",
    "collection": "the name",
    "entity": "qualified_name",
    "project": "qualified_name",
    "incremental": "a new Artifact of the same name; unchanged files are stored once",
    "is_draft": "whether version raises",
    "url": "the Artifacts tab of the run's page",
    "state": "wait()",
    **dict.fromkeys(
        (
            "commit_hash",
            "created_at",
            "digest_algorithm",
            "distributed_id",
            "history_step",
            "id",
            "linked_at",
            "source_artifact",
            "source_collection",
            "source_entity",
            "source_project",
            "source_qualified_name",
            "source_version",
            "tags",
            "updated_at",
        ),
        "the page of the version on the server",
    ),
    **dict.fromkeys(("is_link", "linked_artifacts", "unlink"), "the page of the registry"),
    "ttl": "Client.set_artifact_ttl(name, ttl), as the version was logged",
    "use_as": "run.use_artifact(name, use_as)",
    "delete": "W&B's own Api, which runvitals' server answers",
}
