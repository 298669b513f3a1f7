"""Tables, figures and pages, drawn from records and arrays handed in."""

from spectrakan.report.elements import DataTable, Entry, Origin, Paragraph, Picture
from spectrakan.report.page import Section, page

__all__ = ["DataTable", "Entry", "Origin", "Paragraph", "Picture", "Section", "page"]
