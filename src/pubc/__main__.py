"""`pubc` and `python -m pubc`: deaf to nothing, from the first line to the last."""

import _signal  # type: ignore[import-not-found]  # built in, as sys is: nothing loads before main
import sys

__all__ = ["main"]


def main() -> int:
    """Run the command that the shell names; the exit code."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # ends us without a word or a trace
    from pubc.cli.early_interrupt import leave_now, listen, listen_to_the_end

    listen()
    from pubc.cli.standard_streams import mend_streams

    mend_streams()
    from pubc.cli.memory_guard import guard_memory

    guard_memory()
    from pubc.cli.main import main as run

    try:
        code = run()
        listen_to_the_end()
    except KeyboardInterrupt:  # in the moment between the two
        leave_now(_signal.SIGINT, None)
    return code


if __name__ == "__main__":
    sys.exit(main())
