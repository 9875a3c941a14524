"""`python -m headwork` is the command `headwork`."""

from headwork.cli import main

if __name__ == "__main__":
    main()
