"""Modes, shells and bands."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from spectrakan.metrics import energy_spectrum, evaluate_fields
from spectrakan.metrics.spectral import shell_energies, shells_of

BANDS = ("frmse_low", "frmse_mid", "frmse_high")


def wave(space, mode, phase=0.4):
    """cos(2 pi k.x + phase) on cell indices, shaped as one sample, one frame, one field."""
    places = np.meshgrid(*(np.arange(n) / n for n in space), indexing="ij")
    angle = 2 * np.pi * sum(k * x for k, x in zip(mode, places, strict=True)) + phase
    return torch.from_numpy(np.cos(angle)).reshape(1, 1, *space, 1)


def band_of(shell):
    return BANDS[0] if shell < 4 else BANDS[1] if shell < 12 else BANDS[2]


def shells_in(band, last):
    return {"frmse_low": 4, "frmse_mid": 8, "frmse_high": last + 1 - 12}[band]


MODES = [((40,), (k,)) for k in (1, -3, 4, -11, 12, 19)]
MODES += [((32, 40), m) for m in itertools.product((0, 3, -3, 7), (2, -2, 9, -12))]
MODES += [((33, 31), m) for m in ((-1, -1), (2, -3), (-8, 8), (14, -2), (0, -13))]
MODES += [((26, 28, 27), m) for m in ((1, -1, 1), (-2, 3, -4), (0, 0, -5), (-12, 1, 2))]


@pytest.mark.parametrize(("space", "mode"), MODES, ids=str)
def test_a_single_mode_lands_in_its_band_only(space, mode):
    target = torch.zeros(1, 1, *space, 1)
    scores = evaluate_fields(target + wave(space, mode), target)
    shell = math.isqrt(sum(k * k for k in mode))
    last = space[0] // 2 if len(space) == 1 else min(space) // 2 - 1
    home = band_of(shell)
    # |F|² is 1/4 at k and at -k, so the shell's amplitude is sqrt(1/2), the rms of a cosine.
    assert scores[home] == pytest.approx(math.sqrt(0.5) / shells_in(home, last), rel=1e-12)
    for band in set(BANDS) - {home}:
        assert scores[band] == pytest.approx(0.0, abs=1e-14), band


def test_pdebench_does_not_see_a_mode_of_the_other_diagonal():
    target = torch.zeros(1, 1, 32, 32, 1)
    published = {"convention": "pdebench", "batch_size": 1}
    along = evaluate_fields(target + wave((32, 32), (5, 5)), target, **published)
    across = evaluate_fields(target + wave((32, 32), (5, -5)), target, **published)
    assert along["frmse_mid"] == pytest.approx(0.5 / 8, rel=1e-12)
    assert across["frmse_mid"] == pytest.approx(0.0, abs=1e-14)


def test_modes_beyond_the_last_full_shell_are_in_no_band_of_a_plane():
    target = torch.zeros(1, 1, 32, 32, 1)
    scores = evaluate_fields(target + wave((32, 32), (14, 14)), target)
    assert max(scores[band] for band in BANDS) < 1e-14


@pytest.mark.parametrize("space", [(1,), (2,), (7,), (8,), (5, 8), (8, 5), (6, 6), (4, 5, 6), (5, 6, 3)], ids=str)
@pytest.mark.parametrize("complete", [True, False])
def test_shells_against_all_modes_counted_one_by_one(space, complete):
    values = torch.randn(2, 3, *space, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    found = shell_energies(values, shells_of(space, complete=complete)).numpy()
    last = space[0] // 2 if len(space) == 1 else min(space) // 2 - 1
    expected = np.zeros((2, 3, sum(space), 2))
    transform = np.fft.fftn(values.numpy(), axes=tuple(range(2, 2 + len(space)))) / math.prod(space)
    signed = [np.rint(np.fft.fftfreq(n) * n).astype(int) for n in space]
    for place in np.ndindex(*space):
        shell = math.isqrt(sum(int(axis[i]) ** 2 for axis, i in zip(signed, place, strict=True)))
        expected[:, :, shell] += np.abs(transform[(slice(None), slice(None), *place)]) ** 2
    count = last + 1 if complete else found.shape[2]
    assert found.shape[2] == count
    np.testing.assert_allclose(found, expected[:, :, :count], atol=1e-14)
    if not complete:
        assert expected[:, :, count:].sum() == 0.0


@pytest.mark.parametrize("space", [(31,), (12, 9), (6, 8, 5)], ids=str)
def test_parseval_with_all_shells(space):
    values = torch.randn(2, 3, *space, 2, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    total = energy_spectrum(values, complete=False).sum(2)
    square = values.square().flatten(2, -2).mean(2)
    torch.testing.assert_close(total, square, rtol=1e-13, atol=0)


def test_the_slope_of_a_power_law_is_found():
    size = 128
    k = torch.fft.fftfreq(size, 1 / size, dtype=torch.float64)
    length = (k[:, None] ** 2 + k[None, :] ** 2).sqrt()
    noise = torch.fft.fft2(torch.randn(64, size, size, generator=torch.Generator().manual_seed(3)).double())
    field = torch.fft.ifft2(noise * length.clamp_min(1.0) ** -2.0).real
    spectrum = energy_spectrum(field[:, None, ..., None])[:, 0, 8:48, 0].mean(0)
    shells = torch.arange(8, 48) + 0.5
    slope = np.polyfit(shells.log().numpy(), spectrum.log().numpy(), 1)[0]
    assert slope == pytest.approx(-3.0, abs=0.05)  # |F|² ~ k^-4 on a circle of length ~ k
