"""Seed 001, "Error Handling": a malformed file fails fast, with its place and the lines around it."""

import tempfile
from pathlib import Path

from nexus_context import ConfigError, ContextLoader

folder = Path(tempfile.mkdtemp()).resolve()
(folder / ".nexus3").mkdir()
settings = folder / ".nexus3" / "config.json"
settings.write_text('{\n  "provider": {},\n  trailing_comma: true,\n}\n')
try:
    ContextLoader().load(folder)
except ConfigError as error:
    print(str(error).replace(str(folder), ""))

settings.write_text("")  # an empty file counts as {}
print(ContextLoader().load(folder).config.context.include_readme)

# It prints:
# Configuration Error: Invalid JSON in /.nexus3/config.json
#
#   Line 3, Column 3: Expecting property name enclosed in double quotes: write "trailing_comma".
#
#   2 |   "provider": {},
#   3 |   trailing_comma: true,
#     |   ^
#   4 | }
#
# Fix the JSON syntax error and try again.
#
# Configuration Error: Invalid JSON in /.nexus3/config.json
#
#   Line 3, Column 23: Illegal trailing comma before end of object: remove it.
#
#   2 |   "provider": {},
#   3 |   trailing_comma: true,
#     |                       ^
#   4 | }
#
# Fix the JSON syntax error and try again.
# False
