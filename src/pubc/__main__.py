"""`python -m pubc` is `pubc`, for places where the script is not on the path."""

import sys

from pubc.cli.main import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
