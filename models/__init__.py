"""Whole models: audits every node of one on a backend, and answers what a backend can do with one."""
