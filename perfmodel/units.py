"""Units in SI: multiply to come in, divide to go out."""

US = 1e-6  # microsecond [s]
GHZ = 1e9  # gigahertz [Hz]
KIB = 2**10  # kibibyte [B]
MIB = 2**20  # mebibyte [B]
GB = 1e9  # gigabyte [B]
