"""Measured times: their tables, and what is done with them."""
