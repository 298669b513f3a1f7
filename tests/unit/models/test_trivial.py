"""Trivial baselines: what they predict, exactly; and that there is nothing to train."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import spectrakan as sk
from spectrakan.errors import ConfigError, ShapeError

TRIVIAL = ["persistence", "climatology", "ridge"]


def signature(dims: int = 1, **facts) -> sk.OperatorSignature:
    return sk.OperatorSignature(**{"space_dims": dims, "history": 2, "in_channels": 2, "out_channels": 2, **facts})


@pytest.mark.parametrize("name", TRIVIAL)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_there_is_nothing_to_train_and_folders_give_them_back(name, dims, tmp_path):
    torch.manual_seed(0)
    model = sk.build_model(name, signature(dims, num_params=1))
    assert not any(p.requires_grad for p in model.parameters())
    space = [8, 6, 5][:dims]
    window = sk.Window(torch.randn(9, 2, *space, 2), torch.randn(9, 2, *space, 2), torch.randn(9, 1))
    model.input_units.set(mean=torch.tensor([1.5, -2.0]), scale=torch.tensor([0.3, 7.0]))
    model.fit_windows([window], units=False)
    model.save_pretrained(tmp_path / "model")
    back = sk.from_pretrained(tmp_path / "model")
    assert back.config == model.config
    assert torch.equal(back(window.inputs, window.params), model(window.inputs, window.params))


@pytest.mark.parametrize("name", TRIVIAL)
def test_they_predict_before_they_are_fitted_and_refuse_wrong_shapes(name):
    model = sk.build_model(name, signature(steady=True))
    model.output_units.set(mean=torch.tensor([4.0, 5.0]), scale=torch.ones(2))
    predicted = model(torch.randn(3, 2, 8, 2))
    assert torch.equal(predicted, torch.tensor([4.0, 5.0]).expand(3, 8, 2)), "the mean of the units"
    with pytest.raises(ConfigError, match="at least one window"):
        model.fit_windows([])
    with pytest.raises(ShapeError, match="expected an input of shape"):
        model(torch.randn(3, 1, 8, 2))


def test_persistence_keeps_the_last_frame():
    model = sk.build_model("persistence", signature(2))
    model.input_units.set(mean=torch.tensor([1.0, 2.0]), scale=torch.tensor([4.0, 0.5]))
    x = torch.randn(3, 2, 7, 5, 2)
    assert torch.allclose(model(x), x[:, -1], atol=1e-6)


def test_climatology_is_the_mean_of_all_targets_whatever_the_input():
    model = sk.build_model("climatology", signature(2, out_channels=1))
    model.output_units.set(mean=torch.tensor([0.5]), scale=torch.tensor([3.0]))
    targets = torch.rand(7, 3, 6, 5, 1)
    model.fit_windows(
        [sk.Window(torch.randn(4, 2, 6, 5, 2), targets[:4]), sk.Window(torch.randn(3, 2, 6, 5, 2), targets[4:])]
    )
    assert torch.allclose(model(torch.randn(2, 2, 6, 5, 2)), targets.mean((0, 1)).expand(2, 6, 5, 1), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("persistence", {"predict": "direct"}),
        ("climatology", {"predict": "increment"}),
        ("ridge", {"multiplicative_readout": True}),
    ],
)
def test_stages_that_contradict_them_are_refused(name, settings):
    with pytest.raises(ConfigError, match=r"leave it out|leave out"):
        sk.build_model(name, signature(), **settings)


@pytest.mark.parametrize("name", TRIVIAL)
def test_windows_may_come_from_an_iterable_that_is_never_held_whole(name):
    class Stream:
        passes = 0

        def __iter__(self):
            self.passes += 1
            generator = torch.Generator().manual_seed(0)
            for _ in range(7):
                frames = torch.randn(4, 3, 8, 2, generator=generator)
                yield sk.Window(frames[:, :2], frames[:, 2:])

    stream, field = Stream(), torch.randn(2, 2, 8, 2)
    models = [sk.build_model(name, signature()) for _ in range(2)]
    models[0].fit_windows(stream)
    models[1].fit_windows(list(Stream()))
    assert stream.passes > 1
    assert torch.equal(models[0](field), models[1](field))


def test_climatology_goes_to_other_grids_by_means_and_by_lines():
    model = sk.build_model("climatology", signature(out_channels=1)).double()
    ramp = ((torch.arange(8).double() + 0.5) / 8).view(1, 1, 8, 1)
    model.fit_windows([sk.Window(torch.zeros(1, 2, 8, 2).double(), ramp)], units=False)
    assert model.mean_field.values.shape[:-1] == (8,)
    coarse = model(torch.zeros(1, 2, 4, 2).double())[0, :, 0]
    assert coarse.tolist() == pytest.approx([1 / 8, 3 / 8, 5 / 8, 7 / 8], abs=1e-6)
    fine = model(torch.zeros(1, 2, 32, 2).double())[0, :, 0]
    assert fine[2:-2].tolist() == pytest.approx([(i + 0.5) / 32 for i in range(2, 30)], abs=1e-6)
    uneven = sk.Grid.from_edges([torch.tensor([0.0, 0.5, 0.625, 0.75, 1.0])])
    placed = model(torch.zeros(1, 2, 4, 2).double(), grid=uneven)[0, :, 0]
    assert placed.tolist() == pytest.approx([0.25, 0.5625, 0.6875, 0.875], abs=1e-6)


def test_climatology_needs_one_grid():
    model = sk.build_model("climatology", signature())
    with pytest.raises(ShapeError, match="one grid"):
        model.fit_windows([sk.Window(torch.zeros(1, 2, n, 2), torch.zeros(1, 1, n, 2)) for n in (8, 9)], units=False)


def test_ridge_is_the_least_squares_solution_of_numpy():
    """Its answer, put together from coefficients by hand: FFT in, numpy's lstsq, waves out."""
    torch.manual_seed(0)
    facts = signature(in_channels=1, out_channels=1, boundary=("periodic",), num_params=1, steady=True)
    model = sk.build_model("ridge", facts, num_modes=3, penalty=1e-3).double()
    x, y, params = torch.randn(40, 2, 16, 1).double(), torch.randn(40, 1, 16, 1).double(), torch.randn(40, 1).double()
    model.fit_windows([sk.Window(x[:25], y[:25], params[:25]), sk.Window(x[25:], y[25:], params[25:])], units=False)

    cells = (np.arange(16) + 0.5) / 16
    waves = np.stack([w for k in range(3) for w in (np.cos(2 * np.pi * k * cells), -np.sin(2 * np.pi * k * cells))])
    features = np.concatenate([(x[..., 0].numpy() @ waves.T / 16).reshape(40, -1), params.numpy()], axis=1)
    usual = y[:, 0, :, 0].numpy().mean(0)
    targets = (y[:, 0, :, 0].numpy() - usual) @ waves.T / 16
    centre, middle = features.mean(0), targets.mean(0)
    centred = features - centre
    size = 1e-3 * np.mean(np.sum(centred**2, axis=0))
    below = np.concatenate([centred, np.sqrt(size) * np.eye(13)])
    weights = np.linalg.lstsq(below, np.concatenate([targets - middle, np.zeros((13, 6))]), rcond=None)[0]
    amplitude = np.array([1, 1, 2, 2, 2, 2])
    expected = usual + ((features - centre) @ weights + middle) * amplitude @ waves
    assert np.allclose(model(x, params)[..., 0].numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("boundary", ["periodic", "wall"])
def test_ridge_finds_a_linear_evolution_exactly_and_keeps_it_at_other_resolutions(boundary):
    """Heat flow for a time 0.02: each mode decays by its own factor, which low modes of a random field show."""
    torch.manual_seed(0)
    model = sk.build_model(
        "ridge", signature(history=1, in_channels=1, out_channels=1, boundary=(boundary,)), num_modes=5
    )
    model = model.double()
    frequency = 2 * math.pi if boundary == "periodic" else math.pi
    phases = (0.0, math.pi / 2) if boundary == "periodic" else (0.0,)
    amplitudes = torch.randn(60, 4, len(phases)).double()

    def frames(cells: int) -> tuple[torch.Tensor, torch.Tensor]:
        x = (torch.arange(cells).double() + 0.5) / cells
        start, later = torch.zeros(60, cells).double(), torch.zeros(60, cells).double()
        for k in range(4):
            for p, phase in enumerate(phases):
                wave = amplitudes[:, k, p, None] * torch.cos(frequency * k * x + phase)
                start += wave
                later += math.exp(-0.02 * (frequency * k) ** 2) * wave
        return start[:, None, :, None], later[:, None, :, None]

    start, later = frames(24)
    model.fit_windows([sk.Window(start, later)], units=False)
    for cells in (24, 48, 31):
        start, later = frames(cells)
        error = float((model(start) - later[:, 0]).abs().max())
        assert error < 1e-5, cells
        assert float((start - later).abs().max()) > 1


def test_ridge_leaves_what_lies_above_its_modes_as_in_the_last_frame():
    model = sk.build_model("ridge", signature(history=1, in_channels=1, out_channels=1), num_modes=2, range_margin=None)
    x = torch.randn(50, 1, 16, 1)
    model.fit_windows([sk.Window(x, torch.zeros(50, 1, 16, 1))], units=False)
    left = model(x)
    low = torch.stack([torch.cos(math.pi * k * (torch.arange(16) + 0.5) / 16) for k in range(4)])
    assert float((left[..., 0] @ low.T / 16).abs().max()) < 1e-3, "low modes are predicted: zero"
    high = x[:, 0, :, 0] @ torch.cos(math.pi * 9 * (torch.arange(16) + 0.5) / 16)
    assert torch.allclose(left[..., 0] @ torch.cos(math.pi * 9 * (torch.arange(16) + 0.5) / 16), high, atol=1e-3)


def test_ridge_learns_from_every_step_of_a_long_window():
    torch.manual_seed(0)
    facts = signature(history=2, in_channels=1, out_channels=1, boundary=("periodic",))
    frames = [torch.randn(30, 16, 1).double()]
    for _ in range(5):
        frames.append(0.7 * frames[-1] + 1)
    frames = torch.stack(frames, dim=1)
    whole, parts = sk.build_model("ridge", facts).double(), sk.build_model("ridge", facts).double()
    whole.fit_windows([sk.Window(frames[:, :2], frames[:, 2:])], units=False)
    parts.fit_windows([sk.Window(frames[:, i : i + 2], frames[:, i + 2 : i + 3]) for i in range(4)], units=False)
    field = torch.randn(4, 2, 16, 1).double()
    assert torch.allclose(whole(field), parts(field), atol=1e-7)


@pytest.mark.parametrize(
    ("facts", "modes"),
    [
        ({"space_dims": 1, "history": 10, "in_channels": 3}, 16),
        ({"space_dims": 2, "history": 1, "in_channels": 1}, 16),
        ({"space_dims": 2, "history": 10, "in_channels": 3}, 6),
        ({"space_dims": 3, "history": 1, "in_channels": 1}, 5),
    ],
)
def test_ridge_cuts_the_modes_of_large_fields(facts, modes):
    model = sk.build_model("ridge", sk.OperatorSignature(out_channels=1, **facts))
    frames = min(2, facts["history"])
    assert model.num_modes == modes
    assert model.weights.shape[0] == frames * facts["in_channels"] * (2 * modes) ** facts["space_dims"] <= 1024
