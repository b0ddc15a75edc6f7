"""The case model: element types, programs, cases, expectations, ids, and the protocol that a runner fulfils."""
