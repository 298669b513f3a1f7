"""A user with a problem, a model or a loop of their own: from arrays and files to commands in another folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from torch import nn

import spectrakan as sk
from spectrakan.data.files import write_dataset
from spectrakan.data.loader import Loader
from spectrakan.data.prepare import prepare
from spectrakan.errors import ConfigError, DataFormatError, RunError, ShapeError
from spectrakan.fields import Trajectories
from spectrakan.training.objective import loss as training_loss
from spectrakan.training.resolve import resolve
from spectrakan.training.session import rate_factor

SMALL = ("model.width=8", "model.num_modes=4", "model.num_layers=2", "training.epochs=2", "training.batch_size=8")


def heat(samples: int = 12, frames: int = 6, cells: int = 16, name: str = "my_heat") -> Trajectories:
    """One decaying wave a sample, u = exp(-nu k² t) sin(k x + phase), nu differs by sample."""
    rng = np.random.default_rng(3)
    nu, phase = rng.uniform(0.1, 1.0, samples), rng.uniform(0, 2 * np.pi, samples)
    x, times = 2 * np.pi * np.arange(cells) / cells, 0.1 * np.arange(frames)
    values = np.exp(-nu[:, None] * times)[..., None] * np.sin(x + phase[:, None])[:, None]
    return Trajectories.from_arrays(
        values[..., None], ("heat",), times=times, params=nu, param_names=("nu",), boundary=("periodic",), name=name
    )


def command(*words: str, folder: Path, paths: tuple[Path, ...] = ()) -> subprocess.CompletedProcess[str]:
    places = [Path(sk.__file__).parents[1], *paths]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, places)), "OMP_NUM_THREADS": "1"}
    started = [sys.executable, "-m", "spectrakan", *words]
    return subprocess.run(started, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_arrays_train_under_their_own_name_and_every_command_finds_them(tmp_path: Path):
    run = sk.train(data=heat(), overrides=SMALL, output=tmp_path / "run")
    assert run.record["task"] == "my_heat"
    assert run.record["config"]["data"]["path"] == str(tmp_path / "run" / "data.h5")
    assert run.model.signature.in_fields == ("heat",)
    assert run.model.signature.param_names == ("nu",)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for words in (("evaluate", str(tmp_path / "run"), "--json"), ("check", str(tmp_path / "run"))):
        done = command(*words, folder=elsewhere)
        assert done.returncode == 0, done.stderr
    scored = json.loads(command("evaluate", str(tmp_path / "run"), "--json", folder=elsewhere).stdout)
    assert scored["metrics"]["relative_l2"] == pytest.approx(run.record["metrics"]["relative_l2"], rel=1e-5)
    compared = command("compare", str(tmp_path / "run"), "--json", folder=elsewhere)
    assert next(iter(json.loads(compared.stdout).values()))["task"] == "my_heat"
    shown = command("compare", str(tmp_path / "run"), folder=elsewhere).stdout
    assert "paper" not in shown, "the paper has no number for this problem"


def test_a_run_folder_that_holds_its_data_can_be_moved(tmp_path: Path):
    run = sk.train(data=heat(), test_data=heat(4), overrides=SMALL, output=tmp_path / "run")
    assert yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["data"]["path"] == "data.h5"
    moved = (tmp_path / "run").rename(tmp_path / "moved")
    scored = command("evaluate", "moved", "--json", folder=tmp_path)
    assert scored.returncode == 0, scored.stderr
    assert json.loads(scored.stdout)["metrics"]["rmse"] == pytest.approx(run.record["metrics"]["rmse"], rel=1e-5)
    longer = command("train", "--resume", "moved", "--epochs", "3", folder=tmp_path)
    assert longer.returncode == 0, longer.stderr
    # Fed back from another folder, the settings find the data beside them.
    (tmp_path / "elsewhere").mkdir()
    again = command("train", str(moved / "config.yaml"), "--output", "again", folder=tmp_path / "elsewhere")
    assert again.returncode == 0, again.stderr


def test_a_file_of_another_known_problem_is_named(tmp_path: Path):
    sk.train(
        "darcy2d",
        model="fno",
        overrides=[*SMALL, "data.num_samples=10", "data.resolution=8"],
        output=tmp_path / "run",
    )
    write_dataset(tmp_path / "drops.h5", sk.generate("droplet2d", 3, 8, frames=3))
    for words in (("evaluate", "run", "--data", "drops.h5"), ("predict", "run", "drops.h5", "-o", "x.h5")):
        done = command(*words, folder=tmp_path)
        assert done.returncode == 2
        assert "holds droplet2d, not darcy2d" in done.stderr


def test_a_file_needs_no_problem_name_and_a_mapping_travels_with_the_run(tmp_path: Path):
    data = heat()
    np.savez(tmp_path / "mine.npz", temperature=np.moveaxis(np.asarray(data.values)[..., 0], 0, -1), clock=data.times)
    mapping = {
        "values": [{"fields": ["heat"], "array": "temperature", "axes": ["time", "x", "sample"]}],
        "times": "clock",
        "boundary": ["periodic"],
    }
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(mapping))
    words = ("train", "--data", "mine.npz", "--mapping", "mine.yaml", "--output", "run", *SMALL)
    done = command(*words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "run folder: run" in done.stderr.splitlines()[0]
    config = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert config["task"] == "mine"
    assert config["data"]["path"] == str(tmp_path / "mine.npz")
    assert config["data"]["mapping"]["times"] == "clock"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    predicted = command("predict", "../run", "../mine.npz", "-o", "later.h5", "--horizon", "3", folder=elsewhere)
    assert predicted.returncode == 0, predicted.stderr
    assert sk.load_dataset(elsewhere / "later.h5").values.shape == (12, 3, 16, 1)
    # A file of the same samples that needs no mapping is read by its own layout.
    plain = Trajectories.from_arrays(np.asarray(data.values), ("heat",), times=data.times, boundary=("periodic",))
    write_dataset(tmp_path / "plain.h5", plain)
    again = command("predict", "../run", "../plain.h5", "-o", "again.h5", "--horizon", "3", folder=elsewhere)
    assert again.returncode == 0, again.stderr
    later = [np.asarray(sk.load_dataset(elsewhere / name).values) for name in ("later.h5", "again.h5")]
    np.testing.assert_allclose(*later, rtol=1e-6)
    # Far from what was trained on every value is cut off, and the command says so.
    write_dataset(tmp_path / "hot.h5", replace(plain, values=plain.values + 1e3))
    hot = command("predict", "../run", "../hot.h5", "-o", "hot.h5", "--horizon", "3", folder=elsewhere)
    assert "100.00% of the values were cut off at the range of the training data" in hot.stdout
    assert "cut off" not in again.stdout


def test_a_foreign_file_is_refused_by_the_names_of_its_fields(tmp_path: Path):
    run = sk.train(data=heat(), overrides=SMALL, output=tmp_path / "run")
    other = Trajectories.from_arrays(
        np.asarray(heat().values), ("pressure",), params=heat().params, param_names=("nu",), boundary=("periodic",)
    )
    with pytest.raises(ShapeError, match=r"heat.*pressure|pressure.*heat"):
        sk.evaluate(run.model, other)
    write_dataset(tmp_path / "other.h5", other)
    done = command("predict", "run", "other.h5", "-o", "x.h5", folder=tmp_path)
    assert done.returncode == 2
    assert "pressure" in done.stderr
    assert not (tmp_path / "x.h5").exists()


def test_a_run_without_its_training_data_predicts_and_scores_other_files(tmp_path: Path):
    """A run folder is sent to someone who has new data alone."""
    write_dataset(tmp_path / "data.h5", heat())
    write_dataset(tmp_path / "new.h5", heat(4))
    run = sk.train(data=tmp_path / "data.h5", overrides=SMALL, output=tmp_path / "run")
    (tmp_path / "data.h5").unlink()
    made = command("predict", "run", "new.h5", "-o", "later.h5", folder=tmp_path)
    assert made.returncode == 0, made.stderr
    assert sk.load_dataset(tmp_path / "later.h5").values.shape == (4, run.record["horizon"], 16, 1)
    scored = command("evaluate", "run", "--data", "new.h5", "--json", folder=tmp_path)
    assert scored.returncode == 0, scored.stderr
    expected = sk.evaluate(run.model, heat(4))["metrics"]["relative_l2"]
    assert json.loads(scored.stdout)["metrics"]["relative_l2"] == pytest.approx(expected, rel=1e-5)
    own = command("evaluate", "run", folder=tmp_path)
    assert own.returncode == 2
    assert "data.h5" in own.stderr
    broken = np.array(heat(4).values)
    broken[2, 0, 5] = np.nan
    write_dataset(tmp_path / "broken.h5", replace(heat(4), values=broken))
    for words in (("predict", "run", "broken.h5", "-o", "x.h5"), ("evaluate", "run", "--data", "broken.h5")):
        done = command(*words, folder=tmp_path)
        assert done.returncode == 2
        assert "the first is nan in values: sample 2, frame 0, cell (5), heat" in done.stderr


def test_scoring_the_training_file_says_so(tmp_path: Path):
    write_dataset(tmp_path / "data.h5", heat())
    sk.train(data=tmp_path / "data.h5", overrides=SMALL, output=tmp_path / "run")
    done = command("evaluate", "run", "--data", "data.h5", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "samples were trained on" in done.stdout + done.stderr


class Average(nn.Module):
    """The mean of neighbouring cells times a weight: the smallest network that learns."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, x, params=None, grid=None):
        last = x[:, -1]
        return self.weight * (last.roll(1, 1) + last.roll(-1, 1))


def test_a_plain_module_trains_is_kept_and_is_scored(tmp_path: Path):
    module = Average()
    changes = ["training.epochs=3", "model.noise_level=0.0", "training.learning_rate=0.1"]
    run = sk.train(data=heat(), model=module, overrides=changes, output=tmp_path / "run")
    assert run.record["model"] == "Average"
    assert float(module.weight.detach()) < -0.01, "its own weight was trained: the field decays"
    assert (tmp_path / "run" / "record.json").is_file()
    with pytest.raises(DataFormatError, match="register"):
        sk.from_pretrained(tmp_path / "run")
    scores = sk.evaluate(run.model, heat())
    assert scores["metrics"]["relative_l2"] < 0.5


def test_a_model_and_a_problem_of_an_installed_package_run_by_command(tmp_path: Path):
    """A package with entry points, as pip would leave it, and no other registration."""
    package = tmp_path / "site"
    (package / "mypackage-1.0.dist-info").mkdir(parents=True)
    (package / "mypackage-1.0.dist-info" / "METADATA").write_text("Name: mypackage\nVersion: 1.0\n")
    (package / "mypackage-1.0.dist-info" / "entry_points.txt").write_text(
        "[spectrakan.models]\nmymodel = mypackage:build\n[spectrakan.problems]\ncooling = mypackage:cooling\n"
    )
    (package / "mypackage.py").write_text(
        "import torch\nfrom torch import nn\nimport spectrakan as sk\n\n"
        "class Net(nn.Module):\n"
        "    def __init__(self, channels, gain):\n"
        "        super().__init__()\n"
        "        self.gain, self.linear = gain, nn.Linear(channels, channels)\n"
        "    def forward(self, x, params=None, grid=None):\n"
        "        return self.gain * self.linear(x[:, -1])\n\n"
        "def build(signature, gain=1.0):\n"
        "    return Net(signature.out_channels, gain)\n\n"
        "def sample(count, shape, parameters, generator):\n"
        "    return torch.rand(count, *shape, 1, generator=generator, dtype=torch.float64)\n\n"
        "def solve(initial, times, parameters):\n"
        "    return torch.stack([initial * torch.exp(torch.tensor(-t)) for t in times], dim=1)\n\n"
        "cooling = sk.Equation('cooling', (sk.FieldSpec('u'),), ((0.0, 1.0),), ('periodic',), (16,), (0., 0.5, 1.),\n"
        "                      sample=sample, solve=solve)\n"
    )
    words = ("train", "cooling", "--model", "mymodel", "--output", "run", "data.num_samples=20", "training.epochs=5")
    done = command(*words, "model.gain=2.0", folder=tmp_path, paths=(package,))
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "run" / "record.json").read_text())
    assert (record["task"], record["model"], record["config"]["model"]["gain"]) == ("cooling", "mymodel", 2.0)
    scored = command("evaluate", "run", "--json", folder=tmp_path, paths=(package,))
    assert scored.returncode == 0, scored.stderr
    assert json.loads(scored.stdout)["metrics"]["relative_l2"] == pytest.approx(
        record["metrics"]["relative_l2"], rel=1e-5
    )
    without = command("evaluate", "run", folder=tmp_path)
    assert without.returncode == 2
    assert "unknown problem 'cooling'" in without.stderr


def test_a_plain_loop_with_both_calls_equals_train():
    """The same optimizer, order of batches, schedule and loss by hand: equal weights to rounding."""
    data = heat()
    changes = [*SMALL, "training.clip_norm=0.0", "training.learning_rate=0.003"]
    run = sk.train(data=data, overrides=changes)
    resolved = resolve(None, changes, data=data)
    config = resolved.config
    prepared = prepare(resolved.problem, config.data, data=data)
    windows = prepared.windows("train")
    whole = windows.gather(range(len(windows)))
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(config.runtime.seed)
        settings = {key: value for key, value in config.model.items() if key not in ("name", "variant")}
        model = sk.build_model("spectrakan", prepared.signature(), **settings)
    model.fit_statistics(whole.inputs, whole.targets, whole.params, whole.grid)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.0, weight_decay=config.training.weight_decay)
    loader = Loader(windows, batch_size=8, seed=0)
    total, step = config.training.epochs * len(loader), 0
    for _ in range(config.training.epochs):
        for batch in loader:
            optimizer.param_groups[0]["lr"] = 0.003 * rate_factor(step, total, warmup=config.training.warmup)
            history, params = model.normalized(batch.inputs, batch.params)
            pred = model.forward_normalized(history, params, batch.grid)[:, None]
            value = training_loss(
                "relative_l2", pred, model.output_units.normalize(batch.targets), grid=batch.grid
            ).mean()
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            step += 1
    train = prepared.parts["train"]
    rollouts = prepared.windows("train", horizon=prepared.horizon, starts="first").gather(range(len(train.samples)))
    model.calibrate(rollouts.inputs, rollouts.targets, rollouts.params, rollouts.grid)
    last = run.model.state_dict()
    # Training keeps the best epoch; here that is the last one.
    assert run.record["metrics"]["relative_l2"] is not None
    for name, tensor in model.state_dict().items():
        if tensor.is_floating_point():
            assert torch.allclose(tensor, last[name], rtol=1e-3, atol=1e-5), name


def test_a_finished_run_is_extended_and_an_edited_config_is_refused(tmp_path: Path):
    short = sk.train(data=heat(), overrides=SMALL, output=tmp_path / "run")
    longer = sk.resume(tmp_path / "run", epochs=4)
    assert longer.record["config"]["training"]["epochs"] == 4
    assert not torch.equal(longer.model.readout.out.weight, short.model.readout.out.weight)
    again = sk.resume(tmp_path / "run")
    assert again.record == longer.record
    with pytest.raises(ConfigError, match="extend it to more than that, got 4"):
        sk.resume(tmp_path / "run", epochs=4)
    (tmp_path / "run" / "record.json").unlink()
    path = tmp_path / "run" / "config.yaml"
    path.write_text(path.read_text().replace("batch_size: 8", "batch_size: 4"))
    with pytest.raises(RunError, match=r"config\.yaml' was changed.*training\.batch_size: 8 -> 4"):
        sk.resume(tmp_path / "run")


def test_an_extension_that_cannot_begin_leaves_the_finished_run_as_it_is(tmp_path: Path):
    """A record that is removed first would be lost where the module or the data of the run are missing."""
    run = sk.train(data=heat(), model=Average(), overrides=SMALL[3:], output=tmp_path / "run")
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*.*") if path.is_file()}
    with pytest.raises(ConfigError, match="hand it in"):
        sk.resume(tmp_path / "run", epochs=4)
    data = (tmp_path / "run" / "data.h5").rename(tmp_path / "data.h5")
    write_dataset(tmp_path / "run" / "data.h5", heat(11))
    with pytest.raises(RunError, match="go on with the same data"):
        sk.resume(tmp_path / "run", epochs=4, model=Average())
    data.rename(tmp_path / "run" / "data.h5")
    assert {path: path.read_bytes() for path in before} == before
    longer = sk.resume(tmp_path / "run", epochs=4, model=Average())
    assert longer.record["config"]["training"]["epochs"] == 4
    assert run.record["config"]["training"]["epochs"] == 2
    assert json.loads((tmp_path / "run" / "record.json").read_text()) == longer.record


def test_a_file_is_read_at_the_runs_time_step_and_without_parameters_that_it_hides(tmp_path: Path):
    write_dataset(tmp_path / "data.h5", heat(frames=12))
    changes = [*SMALL, "data.stride_time=2", "data.use_params=false", "data.history=2"]
    sk.train(data=tmp_path / "data.h5", overrides=changes, output=tmp_path / "run")
    scored = command("evaluate", "run", "--data", "data.h5", "--json", folder=tmp_path)
    assert scored.returncode == 0, scored.stderr
    assert json.loads(scored.stdout)["times"] == pytest.approx([0.4, 0.6, 0.8, 1.0])
    made = command("predict", "run", "data.h5", "-o", "later.h5", "--horizon", "3", folder=tmp_path)
    assert made.returncode == 0, made.stderr
    assert sk.load_dataset(tmp_path / "later.h5").times == pytest.approx([0.4, 0.6, 0.8])
    for words in (
        ("predict", "run", "data.h5", "-o", "x.h5", "--horizon", "-2"),
        ("evaluate", "run", "--horizon", "0"),
    ):
        done = command(*words, folder=tmp_path)
        assert done.returncode == 2
        assert "Invalid value for '--horizon': Input should be greater than or equal to 1" in done.stderr


ARGUMENTS = """
import numpy as np, spectrakan as sk
from torch import nn
class Last(nn.Module):
    def forward(self, x, params=None, grid=None):
        return x[:, -1]
data = sk.Trajectories.from_arrays(np.random.rand(9, 4, 8, 1), ("u",))
for act in (
    lambda: sk.train(data=data.values),
    lambda: sk.train(data),
    lambda: sk.train(data=data, model=Last),
    lambda: sk.evaluate(Last(), "data.h5"),
    lambda: sk.rollout(Last(), data.values[:, :1], 2),
):
    try:
        act()
    except sk.errors.SpectraKANError as problem:
        print(problem)
"""


def test_arguments_of_another_kind_are_refused_with_what_to_give(tmp_path: Path):
    """In a process without the type checks of the tests, as users have them."""
    environment = os.environ | {"PYTHONPATH": str(Path(sk.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", ARGUMENTS], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    made = "arrays become them by sk.Trajectories.from_arrays, xarray sets by from_xarray, files by sk.load_dataset"
    assert done.stdout.splitlines() == [
        f"data must be Trajectories or a file, got ndarray; {made}",
        "trajectories are given by name: sk.train(data=...)",
        "model must be a name or a module, got type <class '__main__.Last'>; give Last(...)",
        f"data must be Trajectories, got str; {made}",
        "expected an input as a torch tensor, got ndarray; use torch.from_numpy(array)",
    ]


def test_overrides_are_a_text_texts_or_values_and_fields_have_names_of_their_own():
    for given in ("training.learning_rate=0.5", ["training.learning_rate=0.5"], {"training.learning_rate": 0.5}):
        few = {"overrides": given, "data": heat(6, frames=3), "model": Average()}
        assert sk.train(**few).record["config"]["training"]["learning_rate"] == 0.5
    with pytest.raises(ShapeError, match="these come twice: u"):
        Trajectories.from_arrays(np.zeros((2, 3, 8, 2)), ("u", "u"))


def test_settings_that_a_factory_does_not_take_are_refused():
    sk.register_model("average", lambda signature, cells=3: Average())
    with pytest.raises(ConfigError, match=r"takes \(signature, cells=3\).*unexpected .* 'width'"):
        sk.train(data=heat(), model="average", overrides=["model.width=3"])
    sk.register_model("bare_class", Average)
    with pytest.raises(ConfigError, match=r"'bare_class' takes \(\).*too many positional arguments"):
        sk.train(data=heat(), model="bare_class")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["data.split.by=time"], "split.by=time cuts trajectories in time; these samples are steady"),
        (
            ["training.mode=autoregressive", "training.horizon=3"],
            "a steady problem has one frame, got training.horizon=3",
        ),
    ],
)
def test_what_a_steady_problem_lacks_is_named(changes: list[str], message: str):
    data = Trajectories.from_arrays(np.random.default_rng(0).random((9, 8, 1)), ("p",), inputs=np.ones((9, 8, 1)))
    with pytest.raises(ConfigError, match=re.escape(message)):
        sk.train(data=data, overrides=[*SMALL, *changes])


def test_a_time_step_of_the_data_and_one_that_is_filled_in_exclude_each_other():
    data = replace(heat(), param_names=("dt",))
    with pytest.raises(ConfigError, match="the data have a parameter dt of their own"):
        sk.train(data=data, overrides=[*SMALL, "data.dt_input=true"])
    assert sk.train(data=data, overrides=SMALL).model.signature.param_names == ("dt",)


def test_few_samples_and_frames_name_the_settings_that_help():
    with pytest.raises(ConfigError, match=r"1 distinct .* split long ones in time \(data\.split\.by=time\)"):
        sk.train(data=heat(1), overrides=SMALL)
    with pytest.raises(ConfigError, match=r"history and horizon take 6; lower data\.history or data\.horizon"):
        sk.train(data=heat(1, frames=20), overrides=[*SMALL, "data.split.by=time"])


def test_a_run_without_weights_yet_names_the_command_that_continues_it(tmp_path: Path):
    sk.train(data=heat(), overrides=SMALL, output=tmp_path / "my run")
    shutil.rmtree(tmp_path / "my run" / "checkpoints" / "best")
    (tmp_path / "my run" / "record.json").unlink()
    for words in (("evaluate", "my run"), ("predict", "my run", "my run/data.h5", "-o", "later.h5")):
        done = command(*words, folder=tmp_path)
        assert done.returncode == 2
        assert "no trained weights yet; continue it by `spectrakan train --resume 'my run'`" in done.stderr


def test_fine_tuning_starts_from_the_weights_of_another_run(tmp_path: Path):
    first = sk.train(data=heat(), overrides=SMALL, output=tmp_path / "first")
    changes = [*SMALL, f"training.init_from={tmp_path / 'first'}", "training.learning_rate=1e-9"]
    tuned = sk.train(data=heat(name="other"), overrides=changes)
    assert torch.allclose(tuned.model.readout.out.weight, first.model.readout.out.weight, atol=1e-6)
    for setting, difference in (
        ("model.width=16", "config.width: 8 -> 16"),
        ("model.noise_level=0.0", "stages.noise_level: 0.01 -> 0.0"),
        ("data.history=2", "signature.history: 1 -> 2"),
    ):
        with pytest.raises(ConfigError, match=re.escape(f"(its settings -> those of this run): {difference};")):
            sk.train(data=heat(), overrides=[*changes, setting])
    assert sk.train(data=heat(), overrides=[*changes, "model.ema_decay=0.5"]).model.stages.ema_decay == 0.5


def test_one_model_serves_several_time_steps():
    """du/dt = -nu u: with dt as an input the step that was trained on twice as long frames is right too."""
    changes = ["data.history=1", "data.dt_input=true", "data.strides=[1, 2]", "training.epochs=60", *SMALL[:3]]
    run = sk.train(data=heat(samples=40), overrides=[*changes, "training.batch_size=16"])
    assert run.model.signature.param_names == ("nu", "dt")
    fresh = heat(samples=4)
    frames = torch.as_tensor(np.asarray(fresh.values), dtype=torch.float32)
    assert fresh.params is not None
    nu = torch.as_tensor(fresh.params, dtype=torch.float32)
    for stride in (1, 2):
        params = torch.cat([nu, torch.full_like(nu, 0.1 * stride)], dim=1)
        pred = run.model(frames[:, :1], params).detach()
        change = frames[:, stride] - frames[:, 0]
        assert float((pred - frames[:, stride]).norm() / change.norm()) < 0.5


def test_a_split_in_time_trains_on_one_long_record(tmp_path: Path):
    t, x = 0.05 * np.arange(120), np.arange(16) / 16
    values = np.sin(2 * np.pi * (x - t[:, None]))[None, ..., None]
    data = Trajectories.from_arrays(values, ("u",), times=t, boundary=("periodic",), name="wave")
    split = ["data.split.by=time", "data.split.gap=3", "data.history=2", "data.horizon=4"]
    run = sk.train(data=data, overrides=[*SMALL, *split], output=tmp_path / "run")
    assert run.record["provenance"]["split"]["frames"]["test"][1] == 120
    assert run.record["horizon"] == 4
    done = command("evaluate", "run", folder=tmp_path)
    assert done.returncode == 0, done.stderr


def test_test_data_of_an_own_problem_are_those_of_their_own_file(tmp_path: Path):
    """Test samples are ten times as large as the training samples, so that no score can come from the wrong file."""
    write_dataset(tmp_path / "train.h5", heat())
    large = heat(samples=5)
    write_dataset(tmp_path / "test.h5", replace(large, values=10 * np.asarray(large.values)))
    run = sk.train(
        data=tmp_path / "train.h5", test_data=tmp_path / "test.h5", overrides=SMALL, output=tmp_path / "run"
    )
    resolved = resolve(run.record["config"])
    found = prepare(resolved.problem, resolved.config.data).parts["test"]
    assert len(found.samples) == 5
    assert np.abs(np.asarray(found.trajectories.values)).max() > 5
    own = sk.evaluate(run.model, sk.load_dataset(tmp_path / "test.h5"))["metrics"]["rmse"]
    assert run.record["metrics"]["rmse"] == pytest.approx(own, rel=1e-5)
