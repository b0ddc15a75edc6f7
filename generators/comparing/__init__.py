"""Two operator versions on the same inputs: what each says, and the smallest inputs on which they differ."""
