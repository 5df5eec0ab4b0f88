"""The engine: reduction, null space, ranges, cuts, and the solvers' adapters. Arrays in, arrays out."""
