"""`python -m spectrakan` is the command line."""

from spectrakan.cli import main

if __name__ == "__main__":
    main()
