"""The command line: parse, call the library, print. `siesta --help` loads no torch."""

from siesta.cli.app import main

__all__ = ["main"]
