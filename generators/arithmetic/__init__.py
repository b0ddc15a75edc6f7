"""Number types that references are evaluated over: the same formula gives values, bounds, spreads and exact fractions."""
