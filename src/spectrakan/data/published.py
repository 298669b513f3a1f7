"""The published PDEBench files: name, where it lies, MD5 and size (data set DOI 10.18419/darus-2986)."""

from __future__ import annotations

from dataclasses import dataclass

SERVER = "https://darus.uni-stuttgart.de/api/access/datafile/"
"""Address to which a file's number is appended."""


@dataclass(frozen=True)
class PublishedFile:
    """A file of a public archive."""

    name: str
    task: str
    number: int
    """Number of the file in the archive."""
    md5: str
    gigabytes: float
    """Size in 10^9 bytes, rounded; the server tells the exact one."""


PDEBENCH: dict[str, PublishedFile] = {
    entry.name: entry
    for entry in (
        PublishedFile(
            "1D_CFD_Rand_Eta0.1_Zeta0.1_periodic_Train.hdf5",
            "cns1d", 164668, "45655bd77d006ab539c52b7fbcf099b9", 12.4,
        ),
        PublishedFile(
            "1D_CFD_Rand_Eta0.01_Zeta0.01_periodic_Train.hdf5",
            "cns1d", 164672, "2fdd00138f1d7abc794fb953021a9f43", 12.4,
        ),
        PublishedFile(
            "1D_CFD_Rand_Eta1.e-8_Zeta1.e-8_periodic_Train.hdf5",
            "cns1d", 135485, "ad22fe08b8abc721179dbb34f2cc8b2a", 24.8,
        ),
        PublishedFile(
            "1D_CFD_Rand_Eta1.e-8_Zeta1.e-8_trans_Train.hdf5",
            "cns1d", 133155, "79857a11ad9a69d77b8cf249a1c72d06", 24.8,
        ),
        PublishedFile(
            "1D_CFD_Shock_Eta1.e-8_Zeta1.e-8_trans_Train.hdf5",
            "cns1d", 133156, "08dffc3d84033c7574a70614703dd753", 19.9,
        ),
        PublishedFile(
            "ReacDiff_Nu0.5_Rho1.0.hdf5",
            "diffusion_reaction1d", 133177, "69a429239778d529cd419ed5888ea835", 4.2,
        ),
        PublishedFile(
            "2D_DarcyFlow_beta0.01_Train.hdf5",
            "darcy2d", 133217, "d05c287d4c0b7d3178b0097084238251", 1.3,
        ),
        PublishedFile(
            "2D_DarcyFlow_beta0.1_Train.hdf5",
            "darcy2d", 133218, "294f9a03a4aa16b0e386469ca8b471be", 1.3,
        ),
        PublishedFile(
            "2D_DarcyFlow_beta1.0_Train.hdf5",
            "darcy2d", 133219, "81694ed31306ff2e5f6b76349b0b4389", 1.3,
        ),
        PublishedFile(
            "2D_DarcyFlow_beta10.0_Train.hdf5",
            "darcy2d", 133220, "a7f23cf8011fc211b180828af39b7d1a", 1.3,
        ),
        PublishedFile(
            "2D_DarcyFlow_beta100.0_Train.hdf5",
            "darcy2d", 133221, "7c09f3b1bb097737d3fd52ffb0c6f1c8", 1.3,
        ),
        PublishedFile(
            "2D_rdb_NA_NA.h5",
            "shallow_water2d", 133021, "75d838c47aa410694bdc912ea7f22282", 6.7,
        ),
    )
}  # fmt: skip
