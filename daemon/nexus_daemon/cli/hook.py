"""Answer a hook of another assistant: hand its JSON, from standard input, to the shared daemon.

The settings that `nexus setup` writes call this. It prints nothing but what the assistant is to get, ends
with 0 whatever happens, and does next to nothing where no shared daemon runs.
"""

import argparse

from nexus_daemon.shared import hook_client

EPILOG = """\
SessionStart gives back, after a compaction, what the summary dropped of your instructions, open tasks and
names, in at most --tokens tokens. UserPromptSubmit (Gemini: BeforeAgent) with --memory adds matching memory
and knowledge of the folder. All other events only tell the daemon what happens.
"""


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("assistant", help="the program: claude-code, codex, opencode or gemini")
    command.add_argument("event", help="the program's name of the event, such as SessionStart")
    command.add_argument(
        "--tokens", type=int, metavar="N", help="the most tokens of an answer (default: 1,500)"
    )
    command.add_argument("--memory", action="store_true", help="add memory and knowledge to prompts")


def run(options: argparse.Namespace) -> int:
    words = [options.assistant, options.event]
    words += [] if options.tokens is None else ["--tokens", str(options.tokens)]
    return hook_client.run([*words, *(["--memory"] if options.memory else [])])
