"""Implementations derived from the references, wrong and right ones, which test the suite itself."""
