"""Reads JSON text as a value with the span of every key and value, and continues past errors.

Reading order: problems, strings, lexer, spans, index, scanner, document.
"""

from nexus_context.text.json.document import JsonDocument, parse
from nexus_context.text.json.spans import Pointer, parse_pointer, pointer_text

__all__ = ["JsonDocument", "Pointer", "parse", "parse_pointer", "pointer_text"]
