"""Compares answers with expectations: outcomes, accuracy, waivers and demands."""
