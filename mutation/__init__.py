"""Mutation of `shim/` and `cext/`: what the tests do not notice. Run as ``python -m mutation``."""
