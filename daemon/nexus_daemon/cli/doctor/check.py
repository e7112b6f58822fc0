"""Makes one line of the report: a fact or a check, without all that a report must not contain."""

import os
import re
from typing import Literal

import msgspec

from nexus_context.text.redact import redact_message, says_secret
from nexus_context.text.visible import visible_line
from nexus_daemon.cli.invocation import current
from nexus_daemon.process.logs.log_line import shorten_home

Status = Literal["info", "ok", "warning", "fix"]


class Check(msgspec.Struct, frozen=True):
    """A fact (`info`) or the outcome of a check. `advice` says what to do."""

    section: str
    name: str
    status: Status
    text: str
    advice: str = ""


def covered(check: Check) -> Check:
    """Return the check without secrets, user name, host name and home directory."""
    return msgspec.structs.replace(check, text=cover(check.text), advice=cover(check.advice))


def cover(text: str) -> str:
    """Return a text as it may be in a report."""
    text = shorten_home(redact_message(text))
    user = _user()
    if len(user) > 2:
        text = re.sub(rf"(?<=[/\\]){re.escape(user)}(?![\w-])", "<user>", text)
    host = _host()
    if len(host) > 2 and host != "localhost":
        text = re.sub(rf"(?<![\w.-]){re.escape(host)}(?![\w-])", "<host>", text)
    return visible_line(text)


def cover_value(name: str, value: str) -> str:
    """Return the value of an environment variable. If its name is secret, return only that it is set."""
    return "set" if says_secret(name) else value


def _user() -> str:
    return os.path.basename(os.path.expanduser("~")) or current().environ.get("USER", "")


def _host() -> str:
    return os.uname().nodename if hasattr(os, "uname") else current().environ.get("COMPUTERNAME", "")
