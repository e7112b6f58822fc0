"""Holds a folder at one moment: layers, settings, prompt and problems, frozen and complete."""

import msgspec

from nexus_context.config.merge import Effective
from nexus_context.config.picked_model import ModelChoice
from nexus_context.errors import Problem
from nexus_context.folder.layers.layer_types import Layers
from nexus_context.folder.layers.read_layers import LayerInputs
from nexus_context.folder.prompt.blocks import UNIFIED, AgentGrant
from nexus_context.folder.prompt.environment import Environment
from nexus_context.folder.prompt.gather import PromptContents
from nexus_context.folder.prompt.render import Prompt


class Snapshot(msgspec.Struct, frozen=True):
    """One folder, for one agent or for none.

    `revision` counts from 1. `prompt_for` renders from `environment` and `contents`, unless the prompt
    `is_fixed`: then every request has the same. `choice` is the picked model that the snapshot is for, or
    None for the settings' model.
    """

    folder: str
    revision: int
    layers: Layers
    prompt: Prompt
    problems: tuple[Problem, ...]
    environment: Environment
    contents: PromptContents
    agent: str | None = None
    is_fixed: bool = False
    choice: ModelChoice | None = None

    @property
    def effective(self) -> Effective:
        """The merged settings."""
        return self.layers.effective

    @property
    def role(self) -> str:
        """The role of the agent: manager, worker or unified. The folder's own agent is unified."""
        grant = self.contents.grant
        return UNIFIED if grant is None else grant.role


class LoadInputs(LayerInputs, frozen=True, kw_only=True):
    """What the snapshot of a folder depends on besides its files; see `LayerInputs` for the rest.

    `grant` is what the agent has from the agents above it. If `load_vocabulary`, a large file may cause a
    first vocabulary to be loaded, which takes 0.1 to 0.3 s; otherwise `contents.waits_for` names the
    vocabulary. `trusted` tells whether the user trusts the folder, as the host knows. If it is None, the
    `trust_file` says so; without that file nobody is asked.
    """

    environment: Environment
    grant: AgentGrant | None = None
    load_vocabulary: bool = True
    trusted: bool | None = None
    trust_file: str | None = None
