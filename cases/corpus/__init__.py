"""A corpus: cases in files, which anybody can run without the generators; see docs/corpus.md."""
