"""Whole operators, one file each."""

from spectrakan.models.catalog import MODELS, VARIANTS, build_model, register_model
from spectrakan.models.operator import Operator
from spectrakan.models.own_module import wrap_module
from spectrakan.models.pretrained import from_pretrained
from spectrakan.models.rollout import rollout
from spectrakan.models.stages import Stages
