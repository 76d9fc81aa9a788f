"""Devices, measurements and published values; README.md says what is what."""
