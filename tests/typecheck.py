"""The run-time type checker of the tests: beartype, with an int where a float is asked for allowed (PEP 484)."""

from __future__ import annotations

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
