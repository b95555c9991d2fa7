"""Facts about a run: hardware, git, launcher, container; and what hides secrets in them."""
