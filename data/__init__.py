"""Devices, measurements and published values shipped with the package; README.md says what is what."""
