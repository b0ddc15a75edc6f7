"""Runs cases against backends: their registry, isolated workers, and the judge, in a room each."""
