// The revision of the working copy that the server has: panels are read from it.

class DraftRevision {
  /** 0: no report is being written. */
  value = $state(0);
}

export const draftRevision = new DraftRevision();
