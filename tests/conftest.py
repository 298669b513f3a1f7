"""What all tests share: shape checking of the package by jaxtyping and beartype, seeds, reference data."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from jaxtyping import install_import_hook

# Functions with jaxtyping annotations are checked on every call while the tests run.
_hook = install_import_hook("spectrakan", "typecheck.checked")

# Before torch is loaded; workers and started processes inherit it. Some virtual machines announce AMX and cannot
# execute it, which would end the process at its first bfloat16 product.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")

import torch  # noqa: E402


@pytest.fixture
def generator() -> torch.Generator:
    """A seeded source of randomness, for nothing here draws from the global one."""
    return torch.Generator().manual_seed(0)


@pytest.fixture(scope="session")
def reference_data() -> Path:
    """Folder of data made by others; tests that need it are skipped where it is not at hand."""
    place = os.environ.get("SPECTRAKAN_REFERENCE_DATA", "")
    if not place or not Path(place).is_dir():
        pytest.skip("SPECTRAKAN_REFERENCE_DATA does not name a folder of reference data")
    return Path(place)
