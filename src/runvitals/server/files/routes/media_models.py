"""Bodies of the API about the media and files of a run."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from runvitals.server.http.bodies import ResponseBody, page_body


class MediaKeySchema(ResponseBody):
    """A key under which a run logged media."""

    key: str
    kind: str = Field(
        description="`image`, `table`, `histogram`, `audio`, `video`, `html`, `text`, `figure`."
    )
    count: int = Field(description="Number of records.")
    first_step: float | None
    last_step: float | None
    last_ms: int


MediaKeysPage = page_body("MediaKeysPage", "A page of keys.", media=list[MediaKeySchema])


class MediaRecordSchema(ResponseBody):
    """One logged image, table or other medium."""

    key: str
    kind: str
    step: float | None
    time_ms: int
    rank: int | None
    host: str
    items: list[dict[str, Any]] = Field(
        description="Each with `sha256`, `bytes` and `type` of its file, or with its `value`, or with the "
        "`error` because of which it could not be stored."
    )


MediaRecordsPage = page_body("MediaRecordsPage", "A page of logged media.", records=list[MediaRecordSchema])


class MediaSteps(ResponseBody):
    """The steps at which a run logged media."""

    steps: list[float]


class SavedFileSchema(ResponseBody):
    """A file that a run saved."""

    name: str
    bytes: int
    type: str = Field(description="The media type, from the content.")
    sha256: str
    time_ms: int


SavedFilesPage = page_body("SavedFilesPage", "A page of saved files.", files=list[SavedFileSchema])
