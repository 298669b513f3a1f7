"""Tables, figures and pages, drawn from records and arrays handed in."""

from spectrakan.report.elements import DataTable, Entry, Origin, Paragraph, Picture
from spectrakan.report.export import export_table, to_csv, to_latex, to_markdown, to_rich
from spectrakan.report.page import Section, page
from spectrakan.report.table import Column, Row, Score, Table

__all__ = [
    "Column",
    "DataTable",
    "Entry",
    "Origin",
    "Paragraph",
    "Picture",
    "Row",
    "Score",
    "Section",
    "Table",
    "export_table",
    "page",
    "to_csv",
    "to_latex",
    "to_markdown",
    "to_rich",
]
