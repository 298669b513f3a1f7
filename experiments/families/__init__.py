"""Parametric families: problems whose samples differ in the parameters of their equation."""
