"""Conformance test suites for tensor operators, generated from YAML specs."""

__version__ = "0.1.0"
