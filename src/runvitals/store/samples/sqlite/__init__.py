"""A sample store that needs no server: a folder of SQLite files with compressed chunks.

Writing, from `append` to a month file:

==================  ====================================================================================
store               the public methods; opens the folder (`folder_lock`, `settings`)
commit_thread       group commit: appends batches to the log, then adds them to memory
log                 `log.db`: batches that are durable and not yet sealed (`stored_batches`, `column_sets`)
head                the same samples in memory, in `blocks`
maintenance_thread  seals, compacts, trims the log, deletes
sealing             writes a run's samples into chunks, or into a pack if they are few
compaction          merges short chunks; `day_rollup` summarizes whole days
retention           deletes runs and old samples
==================  ====================================================================================

Files: `database` opens and migrates SQLite files, `month_files` has one for each month with `chunks`
(`chunk_summary`) and `packs`; `sealing` sets damaged ones aside, `store_id` marks the owner.

Reading: `reader` joins files and memory, `series` reads one run in one month, `aggregate`
(`aggregation_sums`) reads one metric over many runs.

Tools: `check`, `repair`, `backup`, `inventory`, `stored_ids`.
"""

from runvitals.store.samples.sqlite.settings import StoreSettings
from runvitals.store.samples.sqlite.store import SqliteChunks

__all__ = ["SqliteChunks", "StoreSettings"]
