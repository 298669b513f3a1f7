"""The tables of the paper as cells that can be run, stopped and run again, and what their records say."""
