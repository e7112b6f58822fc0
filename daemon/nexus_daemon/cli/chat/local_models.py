"""Finds a model server that runs on this machine: Ollama's or LM Studio's, at its usual port.

Only for a trusted folder whose settings name no provider. Nothing is sent to it before the user says yes,
except the question which models it has.
"""

import http.client
import json
from contextlib import suppress
from typing import Any

from nexus_context.text.visible import visible_line
from nexus_daemon.cli import output
from nexus_daemon.cli.asking import FolderClient
from nexus_daemon.providers import Target

PORTS = {"Ollama": 11434, "LM Studio": 1234}
PATIENCE_S = 0.5
LARGEST_LIST = 1 << 20  # bytes
OK = 200


def offer_local_provider(client: FolderClient) -> str | None:
    """Let the user choose a model server of this machine for this chat.

    Returns the name of its model, or None if there is no such server or the user does not want it.
    """
    name = client.snapshot().effective.get("/provider/name")
    if name != "editor" or not output.can_ask() or not client.is_trusted():
        return None
    for server, port in PORTS.items():
        models = list_models(port)
        if models:
            offer = f"{server} runs on this machine (port {port}) with {visible_line(models[0])}"
            if output.says_yes(f"The settings name no provider. {offer}. Use it for this chat?"):
                url = f"http://127.0.0.1:{port}/v1"
                client.use_provider(Target(provider="openai-compatible", url=url, key=None, headers={}))
                setting = {"name": "openai-compatible", "base_url": url, "model": models[0]}
                output.beside(
                    f'To use it always: "provider": {json.dumps(setting)} in the global config.json.\n'
                )
                return models[0]
            return None
    return None


def list_models(port: int) -> list[str]:
    """Return the names of the models that a server at a port of this machine offers.

    Empty if nothing answers.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)  # no proxy, no redirect
    answer: Any = None
    with suppress(OSError, ValueError, http.client.HTTPException):
        connection.request("GET", "/v1/models")
        response = connection.getresponse()
        answer = json.loads(response.read(LARGEST_LIST)) if response.status == OK else None
    connection.close()
    data = answer.get("data") if isinstance(answer, dict) else None
    models = data if isinstance(data, list) else []
    names = [model.get("id") for model in models if isinstance(model, dict)]
    return [name for name in names if isinstance(name, str)]
