"""Backends that are other programs: commands, other interpreters, and their environments."""
