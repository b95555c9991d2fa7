"""Facts about a run: hardware, git, launcher, container. Hides secrets in what is recorded."""
