"""From a spec's parameter space to concrete cases with expected outputs."""
