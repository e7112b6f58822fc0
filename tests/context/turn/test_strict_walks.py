"""Random histories at strict providers: nothing is refused, and what is predicted is what happens."""

from pathlib import Path
from uuid import uuid4

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from nexus_context.errors import RequestError
from nexus_context.ledger import open_ledger
from nexus_context.ledger.errors import HeadMovedError, LedgerError
from support.strict_walk import MODELS, TOOLS, Model, Walk

ROOMY, NARROW = 1_000_000, 9_000
TURNS = ("ask", "ask", "ask", "loop", "loop", "event", "meanwhile")
CHANGES = (
    "rules",
    "tools",
    "compact",
    "undo",
    "fork",
    "reopen",
    "rebase",
    "clock",
    "back",
    "model",
)
STEPS = st.tuples(st.sampled_from(TURNS + CHANGES), st.integers(0, 40), st.integers(0, 1))

REFUSALS = ("unknown-compaction", "nothing-to-compact", "no-gain", "no-summary", "unknown-session")
"""What a command says that has nothing to do."""


def take(walk: Walk, step: str, size: int, window: int) -> None:
    if step in TURNS:
        _turn(walk, step, size, window)
    else:
        _change(walk, step, size, window)


def _turn(walk: Walk, step: str, size: int, window: int) -> None:
    if step == "ask":
        walk.ask(window, f"Where is gate {size}? " * (1 + size))
    elif step == "event":
        walk.ask(window, None, event={"alarm": size})
    else:
        results = ["A wall. " * (size * 3 + at) for at in range(1 + size % 3)]
        walk.loop(window, f"Who has key {size}?", results, other=step == "meanwhile")


def _change(walk: Walk, step: str, size: int, window: int) -> None:
    conversation = walk.windows[window]
    match step:
        case "rules":
            walk.snapshot = walk.with_rules(
                "".join(f"Rule {at}: be brief.\n" for at in range(size % 5, size + 1))
            )
        case "tools":
            walk.tools = TOOLS[size % 2 : 1 + size % 3]
        case "compact":
            conversation.compact(made_at=walk.now)
        case "undo":
            conversation.undo_compaction()
        case "fork":
            walk.fork(window, f"fork-{uuid4()}")
        case "reopen":
            walk.reopen(window, walk.sessions[1 - window] if size % 2 else None)
        case "rebase":
            conversation.freeze(None)
        case "clock":
            walk.seconds += size * 20
        case "back":
            walk.seconds -= size * 20
        case "model":
            walk.model = MODELS[size % len(MODELS)]


@settings(max_examples=30, deadline=None, report_multiple_bugs=False, suppress_health_check=list(HealthCheck))
@given(
    model=st.sampled_from(MODELS),
    window=st.sampled_from([ROOMY, NARROW]),
    steps=st.lists(STEPS, min_size=4, max_size=14),
)
@example(
    model=MODELS[0],
    window=ROOMY,
    steps=[("ask", 0, 1), ("rules", 0, 0), ("meanwhile", 1, 0), ("ask", 0, 1)],
)
@example(
    model=MODELS[-1],
    window=ROOMY,
    steps=[("ask", 0, 0), ("ask", 0, 1), ("rules", 0, 0), ("meanwhile", 0, 0)],  # both tell of the rules
)
@example(
    model=next(one for one in MODELS if one.name == "claude-opus-5-5"),
    window=ROOMY,
    steps=[  # the last request shares a message with one that sent a note behind it
        *(("ask", 0, 1), ("rules", 0, 0), ("loop", 0, 1), ("ask", 0, 0), ("ask", 0, 0), ("ask", 0, 0)),
        *(("loop", 0, 0), ("rebase", 0, 0), ("ask", 0, 0)),
    ],
)
def test_no_request_is_refused_and_what_is_predicted_happens(
    tmp_path: Path, model: Model, window: int, steps: list[tuple[str, int, int]]
) -> None:
    ledger = open_ledger(str(tmp_path / f"{uuid4()}.db"))
    walk = Walk(tmp_path, ledger, model, window=window * model.factor)
    for step in steps:
        try:
            take(walk, *step)
        except HeadMovedError:  # another window compacted
            walk.reopen(step[2])
        except (RequestError, LedgerError) as error:
            assert error.code in REFUSALS, error
    ledger.close()
