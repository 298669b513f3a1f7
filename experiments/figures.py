"""The figures of the paper, drawn from trained models and test samples and kept beside the records.

Maps show the first test sample of a task, whatever comes out on it: nothing is picked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from matplotlib.figure import Figure

from experiments.archive import Archive
from experiments.forecasts import Forecasts, forecasts, trained_models
from experiments.gallery import Plate, keep_plate
from experiments.learned import learned_plates
from experiments.main import strongest
from experiments.paper_curves import energy_by_wavenumber
from experiments.paper_maps import fields_by_row, globe_maps, time_strips, with_models
from experiments.record_figures import RECORD_FIGURES
from experiments.sample_maps import instant_maps, space_time_maps
from spectrakan.errors import ConfigError
from spectrakan.metrics.spectral import energy_spectrum
from spectrakan.report.figures.appearance import LOOKS, field_label, look_of

Drawn = Iterator[tuple[Plate, Figure]]
Tell = Callable[[str], None]

DROPLET_TIMES = (0.11, 0.16, 0.21, 0.26)
SPECTRUM_SAMPLES = 16
LEARNED = ("darcy2d", "shallow_water2d")
"""Cases whose SpectraKAN is drawn from the inside."""
MAPS, SPECTRA = "Maps of predictions", "Spectra"


def draw_figures(
    archive: Archive,
    *,
    cases: Sequence[str] | None = None,
    formats: Sequence[str] = ("png",),
    tell: Tell = lambda text: None,
) -> list[str]:
    """Draw what the weights in the cache allow into `results/<scale>/figures`; gives the names of the figures.

    `cases` are all by default, and then the figures that need records alone are drawn too. What cannot be drawn,
    because no model has been trained on it, is reported through `tell`.
    """
    if unknown := [case for case in cases or () if case not in PLANS]:
        raise ConfigError(f"no figures are planned for {', '.join(unknown)}; known: {', '.join(PLANS)}")
    made = []
    for case, plan in PLANS.items():
        if cases is not None and case not in cases:
            continue
        shown = _forecasts(archive, case)
        if shown is None:
            tell(f"{case}: no trained model in the cache; run `python -m experiments main --scale {archive.scale}`")
            continue
        learned = learned_plates(shown) if case in LEARNED else ()
        for plate, figure in (*plan(shown, archive), *learned):
            keep_plate(archive.folder / "figures", plate, figure, formats)
            made.append(plate.name)
            tell(f"{case}: {plate.name}")
    for drawn in RECORD_FIGURES.values():
        for plate, figure in drawn(archive) if cases is None else ():
            keep_plate(archive.folder / "figures", plate, figure, formats)
            made.append(plate.name)
    return made


def _forecasts(archive: Archive, case: str) -> Forecasts | None:
    """Predictions of the models that the paper compares, SpectraKAN first."""
    models = trained_models(archive, case)
    order = [name for name in LOOKS if name in models and name not in {"persistence", "climatology"}]
    return forecasts(archive, case, {name: models[name] for name in order}, SPECTRUM_SAMPLES)


def space_time_plan(shown: Forecasts, archive: Archive) -> Drawn:
    """Every field over space and time, then the spectrum of the first."""
    for index, field in enumerate(shown.trajectories.fields):
        caption = (
            f"{shown.case}: {field_label(field)} over space (to the right) and time (upwards) for the first test "
            "sample: truth and input, then each model's prediction and, below it, its error."
        )
        yield _plate(f"{shown.case}-{field.name}", MAPS, caption, shown), space_time_maps(shown.sample(index))
    yield spectrum(shown)


def steady_plan(shown: Forecasts, archive: Archive) -> Drawn:
    """The solution for one input."""
    sample = shown.sample()
    source = "" if sample.given_field is None else field_label(sample.given_field)
    caption = (
        f"{shown.case}: {field_label(sample.field)} for the first test sample: truth above the input {source}, then "
        "each model's prediction above its error."
    )
    yield _plate(f"{shown.case}-maps", MAPS, caption, shown), instant_maps(sample)
    yield spectrum(shown)


def waves_plan(shown: Forecasts, archive: Archive) -> Drawn:
    """All models at the last frame; LocalFNO against SpectraKAN through time; the spectrum."""
    sample = shown.sample()
    caption = (
        f"{shown.case}: {field_label(sample.field)} at t = {sample.times[-1]:.3g} for the first test sample, rolled "
        f"out from t = {sample.given_times[-1]:.3g}: truth above the last input, then each model's prediction above "
        "its error."
    )
    yield _plate(f"{shown.case}-maps", MAPS, caption, shown), instant_maps(sample)
    pair = [name for name in ("local_fno", "spectrakan") if name in shown.predictions]
    frames = np.unique(np.linspace(0, len(sample.times) - 1, 4).round().astype(int))
    if len(pair) == 2:
        words = f"{shown.case}: LocalFNO against SpectraKAN as time goes on, with their errors on one scale."
        strips = time_strips(sample, [sample.times[frame] for frame in frames], pair)
        yield _plate(f"{shown.case}-local-fno", MAPS, words, shown, pair), strips
    yield spectrum(shown)


def droplet_plan(shown: Forecasts, archive: Archive) -> Drawn:
    """The depth at the paper's times beside the strongest baseline; all fields of SpectraKAN at each time."""
    fields = shown.trajectories.fields
    samples = [shown.sample(index) for index in range(len(fields))]
    times = [time for time in DROPLET_TIMES if any(abs(time - known) < 1e-6 for known in samples[0].times)]
    baselines = [name for name in strongest(archive, shown.case) if name in shown.predictions][:1]
    pair = [name for name in ("spectrakan", *baselines) if name in shown.predictions]
    if times and pair:
        words = f"{shown.case}: {field_label(fields[0])} of the first test sample at the times of the paper."
        strips = time_strips(samples[0], times, pair)
        yield _plate(f"{shown.case}-times", MAPS, words, shown, pair), strips
    for time in times if "spectrakan" in shown.predictions else ():
        words = f"{shown.case}: all fields at t = {time:g} as SpectraKAN predicts them from t = 0.002."
        drawn = fields_by_row(samples, "spectrakan", time)
        yield _plate(f"{shown.case}-fields-{time:.2f}".replace(".", "_"), MAPS, words, shown, ["spectrakan"]), drawn
    yield spectrum(shown)


def climate_plan(shown: Forecasts, archive: Archive) -> Drawn:
    """One day on the globe, for SpectraKAN, the strongest baseline and ridge."""
    names = ("spectrakan", *strongest(archive, shown.case)[:1], "ridge")
    chosen = [name for name in dict.fromkeys(names) if name in shown.predictions] or list(shown.predictions)[:1]
    sample = with_models(shown.sample(), chosen)
    words = (
        f"{shown.case}: the first test day on latitudes and longitudes: input temperature, predicted and true "
        "surface pressure, and the error."
    )
    yield _plate(f"{shown.case}-globe", MAPS, words, shown, chosen), globe_maps(sample)


def spectrum(shown: Forecasts) -> tuple[Plate, Figure]:
    """Energy by wavenumber of the first field at the last frame, the mean over samples."""
    field = shown.trajectories.fields[0]

    def energies(values: np.ndarray) -> list[float]:
        last = torch.as_tensor(np.ascontiguousarray(values[:, -1:, ..., :1], dtype=np.float64))
        return [float(each) for each in energy_spectrum(last).mean(dim=(0, 1))[:, 0]]

    spectra = {name: energies(values) for name, values in shown.predictions.items()}
    figure = energy_by_wavenumber(energies(shown.truth), spectra, f"energy of {field.name.replace('_', ' ')}")
    caption = (
        f"{shown.case}: energy of {field.name.replace('_', ' ')} against wavenumber at the last predicted frame, "
        f"mean of {len(shown.samples)} test samples; below, its ratio to the truth's."
    )
    return _plate(f"{shown.case}-spectrum", SPECTRA, caption, shown), figure


def _plate(name: str, section: str, caption: str, shown: Forecasts, models: Sequence[str] = ()) -> Plate:
    """The note of a figure; its alternative text has the models and their errors."""
    sample = shown.sample()
    listed = models or list(shown.predictions)
    errors = ", ".join(f"{look_of(model).label} {sample.rmse(model):.3g}" for model in listed)
    return Plate(name, section, caption, f"{caption} RMSE of {field_label(sample.field)} on that sample: {errors}.")


PLANS: dict[str, Callable[[Forecasts, Archive], Drawn]] = {
    "cns1d": space_time_plan,
    "diffusion_reaction1d": space_time_plan,
    "darcy2d": steady_plan,
    "shallow_water2d": waves_plan,
    "droplet2d": droplet_plan,
    "climate2d": climate_plan,
}
"""What is drawn of each case."""
