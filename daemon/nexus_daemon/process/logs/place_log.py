"""Log only the place, not the text, of records of packages that quote addresses, headers and answers.

Such records are logged as information at most, since what a library calls an error may be expected here.
"""

import logging

logger = logging.getLogger(__name__)


class _PlaceHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        location = f"{record.name}: {record.funcName}, line {record.lineno}"
        logger.log(min(record.levelno, logging.INFO), "%s", location)


_HANDLER = _PlaceHandler()


def log_places(package: str) -> None:
    """Log only the place (file and function) of the records of this package from now on."""
    package_logger = logging.getLogger(package)
    package_logger.propagate = False
    package_logger.addHandler(_HANDLER)  # no effect the second time
