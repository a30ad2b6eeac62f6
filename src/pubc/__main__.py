"""`pubc` and `python -m pubc`: deaf to nothing, from the first line on."""

import sys

from pubc.cli.early_interrupt import listen

__all__ = ["main"]


def main() -> int:
    """Run the command that the shell names; the exit code."""
    listen()
    from pubc.cli.main import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
