"""Units in SI: multiply to come in, divide to go out."""

US = 1e-6  # microsecond [s]
