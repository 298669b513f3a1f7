"""What the parts of SpectraKAN are worth: table (a) of the paper, and the parts it does not ablate."""

from __future__ import annotations

from spectrakan.experiments.variants_table import Variant, VariantsTable

ABLATION = VariantsTable(
    name="ablation",
    published="ablation_architecture",
    title="Ablation (a), architecture: RMSE on Darcy flow",
    corner="model",
    note="In brackets the paper's value; rows without it are ours alone. Rows without spread are one seed, and all "
    "have size and learning rate of their model's default.",
    variants={
        "amfno": Variant("AMFNO: no token", {"model.token": "none", "model.gate_conditioning": "none"}, "amfno"),
        "no_gml": Variant("AMFNO + KAN, no GML", {"model.use_gml": False}, "amfno+kan"),
        "no_coarse": Variant("no coarse branch", {"model.coarse": False}),
        "no_gates": Variant("no spectral gates", {"model.gates": False, "model.gate_conditioning": "none"}),
        "no_excitation": Variant("no squeeze-excitation", {"model.excitation": False}),
        "no_answer_gates": Variant("no gates on the answer", {"model.answer_error": 0.0}),
        "periodic": Variant("periodic basis", {"model.basis": "fourier"}),
        "direct": Variant("no mean field: predicts the pressure itself", {"model.predict": "direct"}),
        "fno_departure": Variant("FNO with the mean field", {"model.predict": "departure"}, model="fno"),
        "ffno_gates": Variant(
            "F-FNO with the mean field and gates on the answer",
            {"model.predict": "departure", "model.answer_error": 0.1},
            model="ffno",
        ),
        "default": Variant("SpectraKAN", {}, "spectrakan"),
    },
)
