"""What a run leaves behind: a folder, a lock, a log, and a record from which it can be repeated."""

from spectrakan.runs.folder import RunFolder
from spectrakan.runs.log import RunLog, cut_log, read_log
from spectrakan.runs.record import (
    RECORD_KEYS,
    SCORED_KEYS,
    as_json,
    data_digest,
    make_record,
    package_version,
    provenance,
    read_record,
    write_record,
)
