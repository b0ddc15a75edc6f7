"""The operators' arithmetic, a module a family: the formula, and nothing else."""
