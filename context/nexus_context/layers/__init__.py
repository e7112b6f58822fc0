"""The layers of a folder: defaults, global, ancestors, local.

Reading order: model, walk, real_paths, reading, unknown_model, instructions, bootstrap, servers, skills,
read, unread.
"""

from nexus_context.layers.model import Layer, LayerFile, Layers, Skipped
from nexus_context.layers.read_layers import read_layers

__all__ = ["Layer", "LayerFile", "Layers", "Skipped", "read_layers"]
