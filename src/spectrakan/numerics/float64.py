"""Sums in float64 on every device: numbers of devices without float64 are moved to the CPU."""

import torch
from torch import Tensor

WITHOUT_FLOAT64 = frozenset({"mps"})


def to_float64(tensor: Tensor) -> Tensor:
    """The same numbers in float64, on their own device if it has float64, else on the CPU.

    >>> to_float64(torch.ones(2, dtype=torch.float32)).dtype
    torch.float64
    """
    return (tensor.cpu() if tensor.device.type in WITHOUT_FLOAT64 else tensor).to(torch.float64)
