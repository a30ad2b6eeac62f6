"""Peak memory of this very process, for tests that run something in a child of their own."""

from pathlib import Path


def peak() -> int:
    """Peak resident memory in bytes since the program started.

    `getrusage` will not do: a child begins with the peak of the process that started it,
    and a test runner is large.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) << 10
    raise OSError("/proc/self/status has no VmHWM")
