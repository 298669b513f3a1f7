"""Parts with weights, from which operators are built."""
