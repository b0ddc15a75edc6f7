"""Programs that speak the process protocol under other interpreters; nothing here is imported by the package."""
