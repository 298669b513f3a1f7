"""What would fail at the end of a long evaluation is refused at its beginning."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from known_operators import Scaled, evolving, held

from spectrakan.data.files import check_output
from spectrakan.data.split import Split
from spectrakan.errors import ConfigError, RunError, ShapeError
from spectrakan.evaluation import check_bands, check_evaluation, check_stability
from spectrakan.fields import OperatorSignature


def test_horizon_samples_and_fields_are_checked():
    data, model = held(samples=3, frames=4), Scaled(evolving())
    check_evaluation(model, data, 3, samples=[0, 2])
    with pytest.raises(ConfigError, match="a horizon of 1 to 3 is possible, got 4"):
        check_evaluation(model, data, 4)
    for samples in ([], [3], [-1]):
        with pytest.raises(ConfigError, match=r"some of 0\.\.2"):
            check_evaluation(model, data, samples=samples)
    with pytest.raises(ShapeError, match="3 evolving fields"):
        check_evaluation(Scaled(evolving(fields=3)), data)


def test_bands_need_a_calibration_part_of_sufficient_size():
    with pytest.raises(ConfigError, match="no calibration part"):
        check_bands(Split(train=(0, 1), test=(2,)))
    split = Split(train=(0,), calibration=tuple(range(1, 9)), test=(9,))
    with pytest.raises(ConfigError, match="at least 9 calibration trajectories, got 8"):
        check_bands(split)
    check_bands(split, coverage=0.8)


def test_long_rollouts_need_an_operator_in_time():
    check_stability(Scaled(evolving()), held(samples=1, frames=3))
    maps = OperatorSignature(space_dims=1, history=1, in_channels=1, out_channels=2)
    with pytest.raises(ConfigError, match="a steady one"):
        check_stability(Scaled(maps), held(samples=1, frames=3))


def test_output_files_are_checked_before_anything_is_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    check_output(tmp_path / "new" / "fields.nc")
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"
    (tmp_path / "here.h5").touch()
    with pytest.raises(ConfigError, match="exists already"):
        check_output(tmp_path / "here.h5")
    check_output(tmp_path / "here.h5", force=True)
    with pytest.raises(ConfigError, match="unknown ending"):
        check_output(tmp_path / "fields.txt")
    with pytest.raises(RunError, match="cannot write"):
        check_output(tmp_path / "here.h5" / "inside" / "fields.h5")
    monkeypatch.setitem(sys.modules, "h5netcdf", None)
    with pytest.raises(ConfigError, match=r"needs h5netcdf: pip install 'spectrakan\[climate\]'"):
        check_output(tmp_path / "fields.nc")
