"""Programs that speak the process protocol under other interpreters, and import nothing of the package."""
