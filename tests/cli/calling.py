"""Calling pubc as a shell would: its exit code, and what it said on both streams."""

from pubc.cli.main import main


def run(capsys, *words: object) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    told = capsys.readouterr()
    return code, told.out, told.err


def run_line(line: str, capsys) -> tuple[int, str, str]:
    return run(capsys, *line.split())
