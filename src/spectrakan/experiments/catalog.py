"""All tables by name: which cells they need, and what they are made from."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spectrakan.errors import ConfigError, nearest
from spectrakan.experiments import ablation, data_efficiency, main, tokens
from spectrakan.experiments.campaign import Stage
from spectrakan.experiments.learning_rates import rates_stage
from spectrakan.experiments.scales import Scale

TABLES: dict[str, Callable[[Scale], list[Stage]]] = {
    "rates": lambda scale: [rates_stage(main.competitors(scale))],
    "main": main.stages,
    "droplet": lambda scale: main.stages(scale, ["droplet2d"]),
    "ablation": ablation.ABLATION.stages,
    "tokens": tokens.TOKENS.stages,
    "super-resolution": lambda scale: main.stages(scale, ["shallow_water2d"]),
    "appendix": main.stages,
    "data-efficiency": data_efficiency.stages,
    "stability": main.stages,
    "fields": main.fields_stages,
}
"""Stages of each table. Droplet, super-resolution, appendix and stability are made from cells of the main table."""


def stages_of(names: Sequence[str], scale: Scale) -> list[Stage]:
    """The stages of some tables, one after the other; `all` stands for every one."""
    wanted = list(TABLES) if "all" in names else list(names)
    for name in wanted:
        if name not in TABLES:
            raise ConfigError(f"unknown table '{name}'{nearest(name, TABLES)}; known: {', '.join(TABLES)}, all")
    return [stage for name in wanted for stage in TABLES[name](scale)]
