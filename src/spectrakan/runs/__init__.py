"""What a run leaves behind: a folder, a lock, a log, and a record from which it can be repeated."""

from spectrakan.runs.folder import RunFolder
from spectrakan.runs.lock import RunLock
from spectrakan.runs.log import RunLog, read_log
from spectrakan.runs.provenance import data_digest, provenance
from spectrakan.runs.record import RECORD_KEYS, make_record, read_record, write_record

__all__ = [
    "RECORD_KEYS",
    "RunFolder",
    "RunLock",
    "RunLog",
    "data_digest",
    "make_record",
    "provenance",
    "read_log",
    "read_record",
    "write_record",
]
