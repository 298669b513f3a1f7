"""What can be said of a trained model with certainty: bounds, attempts to break them, and their record."""

from spectrakan.theory.attack import AttackSettings
from spectrakan.theory.certificate import Certificate
from spectrakan.theory.certify import certify, certify_radii
