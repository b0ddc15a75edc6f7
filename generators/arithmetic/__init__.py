"""Number types for references: one formula gives values, bounds, spreads and exact fractions."""
