"""Reports as W&B's clients write and read them: their specification, and ours."""
