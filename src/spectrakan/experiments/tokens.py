"""What the token is made of and by: table (b) of the paper."""

from __future__ import annotations

from spectrakan.experiments.variants_table import Variant, VariantsTable

TOKENS = VariantsTable(
    name="tokens",
    published="ablation_token",
    title="Ablation (b), token: RMSE on Darcy flow",
    corner="token",
    note="In brackets the paper's value. Rows without spread are one seed, and all have the default's size and "
    "learning rate. Centre and mean of Darcy's input are one number each, so those tokens hold one number.",
    variants={
        "token_mlp": Variant("MLP", {"model.token": "mlp"}, "token=mlp"),
        "token_center": Variant("data (center)", {"model.token": "raw", "model.pool": "center"}, "token=center"),
        "token_mean": Variant("data (mean)", {"model.token": "raw", "model.pool": "mean"}, "token=mean"),
        "default": Variant("KAN (SpectraKAN)", {}, "token=kan"),
    },
)
