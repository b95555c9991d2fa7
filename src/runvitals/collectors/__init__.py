"""What can be read of a machine: one file per source of numbers, and the facts about what surrounds a run."""
