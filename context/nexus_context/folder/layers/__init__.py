"""Reads the layers of a folder: defaults, global, ancestors, local.

Reading order: model, walk, text_reader, instructions, bootstrap, servers, skills,
agent_definitions, read_layers, unread.
"""

from nexus_context.folder.layers.layer_types import Layer, LayerFile, Layers, Skipped
from nexus_context.folder.layers.read_layers import read_layers

__all__ = ["Layer", "LayerFile", "Layers", "Skipped", "read_layers"]
