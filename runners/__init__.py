"""Backends under test: one module each, the isolated worker pool, and the judge."""
