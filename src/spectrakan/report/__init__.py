"""Tables, figures and pages, drawn from records and arrays handed in."""

from spectrakan.report.export import export_table, to_csv, to_latex, to_markdown, to_rich
from spectrakan.report.figures import error_against_time, fields_side_by_side
from spectrakan.report.page import Picture, page
from spectrakan.report.table import Column, Row, Score, Table

__all__ = [
    "Column",
    "Picture",
    "Row",
    "Score",
    "Table",
    "error_against_time",
    "export_table",
    "fields_side_by_side",
    "page",
    "to_csv",
    "to_latex",
    "to_markdown",
    "to_rich",
]
