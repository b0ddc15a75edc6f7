"""Implementations of our own, wrong ones and right ones, made of the references: they put the suite to the test."""
