"""``python -m perfmodel``."""

import sys

from perfmodel.cli import main

if __name__ == "__main__":
    sys.exit(main())
