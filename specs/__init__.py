"""The spec files, and the code that loads, checks and audits them."""
