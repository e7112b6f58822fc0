"""Says which rules for WebFetch cover an address, and which sites Claude Code reads without a question.

1. Claude Code reads an address as a browser does: `https:host` is `https://host`, a host of other letters
   has its form in ASCII, and `127.1` is `127.0.0.1`.
2. In the domain of a rule, `*.` at the start stands for labels, however many. Every other `*` stands for a
   part of a label. A dot at the end of a domain or host does not count.
"""

import functools
import ipaddress
import posixpath
import re
import socket
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from nexus_context.assistants.permissions.wildcards import with_stars
from nexus_context.disk.files import read_text

SITES = Path(__file__).with_name("open_sites.json")
_ADDRESS = re.compile(r"(?:https?|ftp|wss?):[/\\]*(?P<authority>[^/\\?#]*)(?P<path>[^?#]*)", re.IGNORECASE)
_NO_HOST = re.compile(r"[\x00-\x20#/:<>?@\[\\\]^|%\x7f]")


class WebAddress(NamedTuple):
    """The host and path of an address. The host is in lower case, without user and port."""

    host: str
    path: str


def read_address(text: str) -> WebAddress | None:
    """Read an address as a browser does. Return None if it has no host, or one that no browser takes."""
    match = _ADDRESS.match(re.sub(r"[\t\n\r]", "", text.strip()))
    if match is None:
        return None
    host = _host(re.sub(r":\d*\Z", "", match["authority"].rpartition("@")[2]))
    path = posixpath.normpath(
        re.sub("%2e", ".", match["path"].replace("\\", "/"), flags=re.IGNORECASE) or "/"
    )
    return WebAddress(host, path) if host else None


def covers_domain(pattern: str, host: str) -> bool:
    """Whether the pattern of a rule covers a host. A pattern begins with `domain:`."""
    domain = pattern.removeprefix("domain:").lower().rstrip(".")
    return domain != pattern.lower() and _domain(domain).fullmatch(host.rstrip(".")) is not None


def is_open_site(address: WebAddress) -> bool:
    """Whether Claude Code reads an address without a question."""
    directory = address.host + "/".join(address.path.split("/")[:2])
    return not _sites().isdisjoint((address.host, directory))


def _host(text: str) -> str | None:
    """The host as a browser writes it; None if it takes none such."""
    try:
        if text.startswith("["):
            return f"[{ipaddress.IPv6Address(text[1:-1]).compressed}]"
        labels = unquote(text)
        dots = labels[len(labels.rstrip(".")) :]
        host = labels.rstrip(".").encode("idna").decode().lower() + dots
        if re.fullmatch(r"(?:.*\.)?(?:\d+|0x[\da-f]*)\.?", host):
            host = socket.inet_ntoa(socket.inet_aton(host.rstrip(".")))
    except (OSError, ValueError):
        return None
    return None if _NO_HOST.search(host) else host


@functools.lru_cache(maxsize=4096)
def _domain(domain: str) -> re.Pattern[str]:
    if domain == "*":
        return re.compile(".*", re.DOTALL)
    start = r".*\." if domain.startswith("*.") else ""
    parts = [re.escape(text) for text in domain.removeprefix("*.").split("*")]
    return re.compile(start + with_stars(parts, "[^.]*"), re.DOTALL)


@functools.cache
def _sites() -> frozenset[str]:
    table: dict[str, Any] = msgspec.json.decode(read_text(str(SITES), limit=1 << 20).text or "")
    return frozenset(table["sites"])
