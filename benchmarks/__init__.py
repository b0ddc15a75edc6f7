"""Speed and memory, measured against a bare loop in the same run."""
