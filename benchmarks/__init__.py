"""Speed and memory, as ratios against peers taken in one interleaved run: `make bench`."""
