"""One chat turn: snapshot + conversation + request → what a model is sent, every token with its row."""

from nexus_context.assembly.models import model_in, model_of
from nexus_context.assembly.offered_tools import offered_agent_tools
from nexus_context.assembly.request import FORMATS, AssembledContext, Format, Options, Pending, Request
from nexus_context.assembly.reuse import LARGEST_KEY, assemble_cached
from nexus_context.assembly.turn import Measure, assemble, measure, prefix_of, usage_of, view_of
from nexus_context.assembly.usage_rows import system_rows

__all__ = [
    "FORMATS",
    "LARGEST_KEY",
    "AssembledContext",
    "Format",
    "Measure",
    "Options",
    "Pending",
    "Request",
    "assemble",
    "assemble_cached",
    "measure",
    "model_in",
    "model_of",
    "offered_agent_tools",
    "prefix_of",
    "system_rows",
    "usage_of",
    "view_of",
]
