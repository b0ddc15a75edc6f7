"""Number types that references run over: the same formula gives values, bounds, spreads and exact fractions."""
