"""Runs cases against backends: hosts, judges beside them, batches, executors."""
