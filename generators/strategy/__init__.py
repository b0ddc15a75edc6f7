"""The operators' inputs, a module a family: from a row of parameters to a program and its readings."""
