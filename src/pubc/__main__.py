"""`pubc` and `python -m pubc`: deaf to nothing, from the first line to the last."""

import sys

from pubc.cli.early_interrupt import listen, listen_to_the_end

__all__ = ["main"]


def main() -> int:
    """Run the command that the shell names; the exit code."""
    listen()
    from pubc.cli.main import main as run

    code = run()
    listen_to_the_end()
    return code


if __name__ == "__main__":
    sys.exit(main())
