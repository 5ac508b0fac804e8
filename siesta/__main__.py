"""Entry point of `python -m siesta`, which is the same as the command `siesta`."""

from siesta.cli import main

if __name__ == "__main__":
    main()
