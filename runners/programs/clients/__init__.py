"""Programs that speak the process protocol under other interpreters; the package itself does not import them."""
