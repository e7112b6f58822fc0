"""What must hold of every typing state, whatever the text: no exception, no bug met, nothing out of place."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from nexus_context.disk.containment import INTERNAL
from nexus_context.errors import Problem, Severity
from nexus_context.folder.layers.text_reader import check_settings
from nexus_context.folder.snapshot import Snapshot
from nexus_context.text.json import parse
from support.documents import observed
from support.fixture import Fixture, write_fixture
from support.folders import load_folder
from support.typing_forms import FOLDER, TREE, Form
from support.typing_states import form_of, states

FRESH = 10
"""Of so many states without an error one is compared with a load that knows nothing of before."""


def check_session(root: Path, seed: int, steps: int) -> int:
    """Check so many states of one file in a folder; how many they were. AssertionError where one breaks."""
    form = form_of(seed)
    tree = write_fixture(TREE, root)
    texts = list(states(form, seed, steps))
    if form.is_json:
        check_documents(texts)
    check_folder(tree, form, texts)
    return len(texts)


def check_documents(texts: Iterable[str]) -> None:
    """Everything in a text is found, and each problem has a place in it."""
    for text in texts:
        document = parse("/f", text)
        observed(document)  # it finds every pointer of the value
        _check_places(document.problems, {"/f": text})
        _check_places(check_settings(document), {"/f": text})


def check_folder(tree: Fixture, form: Form, texts: Iterable[str]) -> None:
    """A folder in which a file is typed is the same, whether the short way is taken or all is read again."""
    quick: Snapshot | None = None
    whole: Snapshot | None = None
    changed = frozenset([tree.path(form.path)])
    for number, text in enumerate(texts):
        overlays = {form.path: text}
        quick = load_folder(
            tree, FOLDER, overlays=overlays, previous=quick, changed=changed if quick else None
        )
        whole = load_folder(tree, FOLDER, overlays=overlays, previous=whole)
        check_snapshot(whole)
        same_snapshots(quick, whole)
        if number % FRESH == 0 and all(problem.severity > Severity.ERROR for problem in whole.problems):
            same_snapshots(load_folder(tree, FOLDER, overlays=overlays), whole)


def same_snapshots(one: Snapshot, other: Snapshot) -> None:
    """Two loads show the same."""
    assert sorted(map(repr, one.problems)) == sorted(map(repr, other.problems))
    assert one.layers.layers == other.layers.layers
    assert one.layers.texts == other.layers.texts
    assert one.layers.servers == other.layers.servers
    assert one.layers.skills == other.layers.skills
    assert one.effective.values == other.effective.values
    assert one.prompt == other.prompt


def check_snapshot(snapshot: Snapshot) -> None:
    """No bug was met; each place is in its text, and each setting has one."""
    assert not internal_problems(snapshot), internal_problems(snapshot)
    texts = snapshot.layers.texts
    _check_places(snapshot.problems, texts)
    for chain in snapshot.effective.provenance.values():
        for entry in chain:
            if entry.document is not None:
                assert 0 <= entry.span.start <= entry.span.end <= len(entry.document.text)
    for server in snapshot.layers.servers:
        text = snapshot.layers.good[server.path].text
        for span in (server.span, server.name_span):
            assert 0 <= span.start < span.end <= len(text)
    for fragment in snapshot.prompt.fragments:
        if fragment.path in texts:  # of a stale file the last good text counts
            used = snapshot.layers.good.get(fragment.path)
            text = texts[fragment.path] if used is None else used.text
            assert 0 <= fragment.source.start <= fragment.source.end <= len(text)
    snapshot.prompt.text.encode()


def internal_problems(snapshot: Snapshot) -> list[Problem]:
    """The bugs that were met."""
    return [problem for problem in snapshot.problems if problem.code == INTERNAL]


def _check_places(problems: Iterable[Problem], texts: Mapping[str, str]) -> None:
    for problem in problems:
        for path, start, end in _spans(problem):
            assert 0 <= start <= end, problem
            assert path not in texts or end <= len(texts[path]), problem
        problem.message.encode()


def _spans(problem: Problem) -> Iterator[tuple[str, int, int]]:
    yield problem.path, *problem.span
    for edit in problem.fix.edits if problem.fix else ():
        yield problem.path, *edit.span
    for related in problem.related:
        yield related.path, *related.span
