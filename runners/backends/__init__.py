"""Libraries under test, one module each, and the queries about their operations."""
