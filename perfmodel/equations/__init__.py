"""The equations: pure functions of arrays, one published or derived formula each.

They broadcast, check nothing, and let NaN through. Cycles are of the compute units' clock.
"""
