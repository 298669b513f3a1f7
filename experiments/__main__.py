"""`python -m experiments`: the tables of the paper, cell by cell."""

from spectrakan.cli.app import run_command
from spectrakan.processor import cap_instructions

if __name__ == "__main__":
    cap_instructions()
    from experiments.command import reproduce

    run_command(reproduce)
