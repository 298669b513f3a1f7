"""Tables, figures and pages, drawn from records and arrays handed in."""

from spectrakan.report.page import Origin, Paragraph, Picture, Section, page
from spectrakan.report.runs_page import RunReport, runs_page, scores_table
from spectrakan.report.table import Column, Row, Score, Table, to_markdown, to_rich
