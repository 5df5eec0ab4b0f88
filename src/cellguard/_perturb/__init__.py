"""The pieces of cell perturbation. Arrays in, arrays out; the verb is :func:`cellguard.perturb`."""
