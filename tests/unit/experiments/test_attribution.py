"""The tables of families and of parts: which cells they need, and what is said of their records."""

from __future__ import annotations

from experiments import attribution
from experiments.archive import Archive
from experiments.cells import run_settings
from experiments.scales import scale_named


def test_every_row_is_a_cell_that_can_be_trained():
    scale = scale_named("short")
    cells = [cell for stage in attribution.stages(scale) for cell in stage(None)]
    assert len(cells) == len(attribution.ROWS) * (4 * 5 + 2 * 3)
    firsts = {cell.label: run_settings(cell) for cell in cells if (cell.case, cell.seed) == ("burgers1d_hidden", 0)}
    whole = firsts.pop("whole")
    for name, config in firsts.items():
        assert config.training.epochs == whole.training.epochs, name
        assert config.model != whole.model, name
    assert firsts["ffno_film"].training.learning_rate == firsts["ffno"].training.learning_rate


def test_families_are_judged_against_the_best_unconditioned_model(archive: Archive, keep):
    short = Archive(archive.results, archive.cache, "short")
    errors = {"whole": 0.5, "no_token": 1.0, "ffno": 0.8, "fno": 2.0, "ffno_film": 0.4}
    for cell in attribution.family_stages(scale_named("short"))[0](short):
        if cell.case == "burgers1d_hidden" and cell.seed < 3 and cell.label in errors:
            keep(cell, errors[cell.label] * (1 + 0.02 * cell.seed))
    table, parts = attribution.tables(short)
    assert parts.title.startswith("What each part is worth")  # rows that both tables have are the same cells
    (note,) = table.notes
    assert note.startswith("burgers1d_hidden: 0.625 of F-FNO (p = 0.000): wins")
    made = attribution.overview(short)
    shown = [column.title for column in made.columns]
    assert shown[:-3] == ["SpectraKAN", "no token", "F-FNO", "F-FNO, FiLM by the summary", "FNO"], "rows with records"
    (row,) = made.rows
    assert row.label == "burgers1d_hidden"
    assert row.cells[:5] == ("0.51 (3)", "1.02 (3)", "0.816 (3)", "0.408 (3)", "2 (1)")
    assert row.cells[-3:] == ("0.62 (F-FNO)", "< 0.001", "wins")


def test_rows_that_decide_have_all_seeds_and_shared_cells_are_trained_once():
    scale = scale_named("short")
    families = attribution.family_stages(scale)[0](None)
    seeds: dict[tuple[str, str], int] = {}
    for cell in families:
        seeds[cell.case, cell.label] = seeds.get((cell.case, cell.label), 0) + 1
    for case in attribution.family_cases():
        assert [seeds[case, name] for name in attribution.DECISIVE] == [5, 5, 5]
        linear = case.startswith("advection")
        assert seeds[case, "ffno_film"] == (1 if linear else 5)
        assert seeds[case, "fno"] == 1
    assert seeds["burgers1d_hidden", "paper"] == 5
    shared = set(families) & set(attribution.stages(scale)[0](None))
    assert {cell.case for cell in shared} == {"burgers1d_given", "burgers1d_hidden"}
    assert len(shared) == 2 * 6 * 5
