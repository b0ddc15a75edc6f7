"""A corpus: cases in files, which run without the generators; see docs/corpus.md."""
