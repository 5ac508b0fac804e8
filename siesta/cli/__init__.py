"""The command line: parse, call the library, print. `siesta --help` loads no torch."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; `siesta.cli.app.main` lists the exit codes."""
    try:
        from siesta.cli.app import main as run
    except KeyboardInterrupt:  # Ctrl-C while the commands are still being imported
        sys.stderr.write("error: interrupted; no change was left incomplete\n")
        sys.exit(130)
    run()
