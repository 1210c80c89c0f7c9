# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""The log of an extension: one JSON object a line."""

import json
import logging
from datetime import datetime, timezone


class JSONFormatter(logging.Formatter):
    """Writes a record as one JSON object, with the fields of a call if the record is about one."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line of a record."""
        time = datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")
        line = {"time": time.replace("+00:00", "Z"), "level": record.levelname.lower(), "message": record.getMessage()}
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["stack"] = self.formatException(record.exc_info)
        return json.dumps(line)


def configure() -> None:
    """Writes the log of hookgate to standard error, unless the program has configured logging."""
    log = logging.getLogger("hookgate")
    if log.hasHandlers():
        return
    handler = logging.StreamHandler()
    handler.setFormatter(JSONFormatter())
    log.addHandler(handler)
    log.propagate = False
    if log.level == logging.NOTSET:
        log.setLevel(logging.INFO)
