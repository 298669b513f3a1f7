"""Tables, figures and pages, drawn from records and arrays handed in."""

from spectrakan.report.figures import error_against_time, fields_side_by_side
from spectrakan.report.page import Picture, page

__all__ = ["Picture", "error_against_time", "fields_side_by_side", "page"]
