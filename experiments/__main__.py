"""`python -m experiments`: the tables of the paper, cell by cell."""

from spectrakan.cli.app import run_command

if __name__ == "__main__":
    from experiments.command import reproduce

    run_command(reproduce)
