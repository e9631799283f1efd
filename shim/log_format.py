"""The lines of the log: as text, or as one JSON object a line (`kafka-shim serve --log-format json`)."""

from __future__ import annotations

import logging
import re
import sys

TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
FORMATS = ("text", "json")
# What a terminal, or a reader of lines, would take for more than text. The last ones turn its direction.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def set_up_logging(level: str, log_format: str) -> None:
    """Write the log to stderr. Raises ValueError for an unknown format."""
    if log_format not in FORMATS:
        raise ValueError(f"--log-format is one of {', '.join(FORMATS)}, not {log_format}")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if log_format == "json" else TextLines())
    logging.basicConfig(level=level.upper(), handlers=[handler])
    # No line tells where in the code it was written, nor by which thread or process. To find out takes a quarter of its
    # time; so Python's guide to logging leaves it out.
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False


class TextLines(logging.Formatter):
    """An entry begins at the margin, and its further lines do not: a name that a client has chosen, as of a group, may
    have line ends, and must not make an entry of its own."""

    # The time of the latest line, without its milliseconds: many lines are of one second.
    _second, _second_text = -1, ""

    def __init__(self) -> None:
        super().__init__(TEXT)

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        second = int(record.created)
        if second != self._second:
            self._second_text = super().formatTime(record, datefmt)[:-3]
            self._second = second
        return f"{self._second_text}{int(record.msecs):03d}"

    def format(self, record: logging.LogRecord) -> str:
        if record.exc_info or record.stack_info:
            text = super().format(record)
        else:  # what TEXT says, without a dictionary of all that a record has
            text = f"{self.formatTime(record)} {record.levelname} {record.name}: {record.getMessage()}"
        if text.isprintable():  # nearly always, and sooner said than by the expression
            return text
        return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text).replace("\n", "\n  ")


class JsonLines(logging.Formatter):
    """`time` (UTC), `level`, `logger`, `message`, and `exception` with its traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        import json
        from datetime import UTC, datetime

        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {
            "time": moment.replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)
