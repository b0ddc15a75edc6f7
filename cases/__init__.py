"""The case model: element types, programs, cases, expectations, ids, and the runner protocol."""
