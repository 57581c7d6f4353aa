"""`python -m tapword`."""

from tapword.cli import main

if __name__ == "__main__":
    main()
