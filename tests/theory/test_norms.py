"""Matrix norms from above: against all sign vectors where those can be tried."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spectrakan.theory.norms import sup_to_two, top_eigenvalue


@settings(max_examples=25, deadline=None)
@given(rows=st.integers(1, 6), inputs=st.integers(1, 8), seed=st.integers(0, 10**6))
def test_sup_to_two_lies_between_the_truth_and_half_pi_of_it(rows, inputs, seed):
    matrix = torch.randn(rows, inputs, generator=torch.Generator().manual_seed(seed)).double()
    corners = torch.tensor(list(itertools.product([-1.0, 1.0], repeat=inputs))).double()
    true = (corners @ matrix.T).norm(dim=1).max().item()
    bound = sup_to_two(matrix).item()
    assert true * (1 - 1e-12) <= bound <= 1.06 * math.sqrt(math.pi / 2) * true


def test_sup_to_two_of_a_batch_is_that_of_each():
    matrices = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(0)).double()
    together = sup_to_two(matrices)
    assert torch.allclose(together, torch.stack([sup_to_two(each) for each in matrices]), rtol=1e-6)


@pytest.mark.parametrize("size", [5, 200])
def test_top_eigenvalue_is_above_and_close(size):
    factor = torch.randn(size, size, generator=torch.Generator().manual_seed(1)).double()
    gram = factor @ factor.T
    true = torch.linalg.eigvalsh(gram)[-1].item()
    assert true <= top_eigenvalue(gram).item() <= 1.05 * true


def test_top_eigenvalue_of_nothing_is_nothing():
    assert top_eigenvalue(torch.zeros(3, 3).double()).item() == 0
    assert top_eigenvalue(torch.zeros(200, 200).double()).item() < 1e-200
