"""Backends under test, one module each, with the isolated worker pool and the judge."""
