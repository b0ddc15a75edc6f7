"""Compares two operator versions on the same inputs: their answers, and the smallest inputs on which they differ."""
