# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""The log of an extension: one JSON object a line."""

import json
import logging
import time
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any


class JSONFormatter(logging.Formatter):
    """Writes a record as one JSON object, with the members that the packages of all languages write."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line of a record."""
        now = datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")
        level = "WARN" if record.levelname == "WARNING" else record.levelname
        line = {"time": now.replace("+00:00", "Z"), "level": level, "msg": record.getMessage()}
        line |= getattr(record, "fields", {})  # with a msg that is the same for each call
        if record.exc_info:
            line["stack"] = self.formatException(record.exc_info)
        return json.dumps(line)


def write(level: int, text: str, fields: dict[str, Any], *, stack: bool = False) -> None:
    """Writes a record. Its text is for programs that configure logging themselves, and its fields are for JSON."""
    logging.getLogger("hookgate").log(level, "%s", text, extra={"fields": fields}, exc_info=stack)


@dataclass
class Call:
    """The log of one call."""

    hook: str
    handler: str
    call_id: str
    started: float = field(default_factory=time.monotonic)

    def answered(self) -> None:
        """Writes that the call has succeeded."""
        fields = self._fields("call answered")
        write(logging.DEBUG, f"{self.hook} {self.handler}: answered", fields | self._took())

    def failed(self, kind: str, error: str, *, code: str = "", level: int = logging.INFO) -> None:
        """Writes why the call has failed. kind is one of docs/extensions.md, and code that of the status, if it ends with one."""
        fields = self._fields("call failed") | {"kind": kind} | ({"code": code} if code else {}) | {"error": error}
        broken = kind == "Internal"
        text = f"{self.hook} {self.handler}: " if self.handler else f"{self.hook}: "
        write(logging.ERROR if broken else level, text + (error or kind), fields | self._took(), stack=broken)

    def _fields(self, msg: str) -> dict[str, Any]:
        handler = {"handler": self.handler} if self.handler else {}
        call_id = {"call_id": self.call_id} if self.call_id else {}
        return {"msg": msg, "hook": self.hook} | handler | call_id

    def _took(self) -> dict[str, Any]:
        return {"took": round((time.monotonic() - self.started) * 1e9)}


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
