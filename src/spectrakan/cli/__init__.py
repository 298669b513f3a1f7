"""The command line: one file a command; each parses, calls the library and prints."""

from spectrakan.processor import cap_instructions


def main() -> None:
    """Set the processor's cap where it is needed, before torch is loaded, then run the command."""
    cap_instructions()
    from spectrakan.cli.app import main as run

    run()
