"""Wrong implementations that the suite must expose, and right ones that it must not blame: backends of our own."""
