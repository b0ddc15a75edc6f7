"""Reports on runs, for people and for programs."""
