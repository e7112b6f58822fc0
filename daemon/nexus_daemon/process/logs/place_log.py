"""Packages whose logs quote addresses, headers and answers, which may be secret: only the place is logged.

It is logged as information at most: what is an error for a library may be expected here.
"""

import logging

logger = logging.getLogger(__name__)


class _PlaceHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        location = f"{record.name}: {record.funcName}, line {record.lineno}"
        logger.log(min(record.levelno, logging.INFO), "%s", location)


_HANDLER = _PlaceHandler()


def log_places(package: str) -> None:
    """From now on, log only the place of what this package logs."""
    package_logger = logging.getLogger(package)
    package_logger.propagate = False
    package_logger.addHandler(_HANDLER)  # no effect the second time
