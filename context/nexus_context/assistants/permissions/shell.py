"""Parses a script of Bash into a list of its simple commands, wherever they stand: in pipelines,
substitutions, loops.

1. Scripts are parsed by tree-sitter's grammar of Bash.
2. The text of a word is what is left without its quotes. A word has no text if only the shell knows it. A
   variable that the script itself has set to a known text has that text.
3. If the grammar cannot read a script, `is_broken` is true, and nothing is guessed.
"""

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec
import tree_sitter_bash
from tree_sitter import Language, Node, Parser

Construct = Literal[
    "substitution", "subshell", "group", "for", "case", "function", "background", "heredoc", "braces", "array"
]
"""What a command stands in, or a script contains, that makes it more than a list of commands."""

MOST_BYTES = 20_000
_CONSTRUCTS: dict[str, Construct] = {
    "command_substitution": "substitution",
    "process_substitution": "substitution",
    "subshell": "subshell",
    "compound_statement": "group",
    "for_statement": "for",
    "c_style_for_statement": "for",
    "case_statement": "case",
    "function_definition": "function",
    "heredoc_redirect": "heredoc",
    "brace_expression": "braces",
    "array": "array",
    "subscript": "array",
}
_COMMANDS = ("command", "declaration_command", "unset_command", "test_command")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED_IN_QUOTES = re.compile(r'\\([$`"\\\n])')
_GLOB = re.compile(r"(?<!\\)[*?\[]")
_BRACES = re.compile(r"(?<!\$)\{[^{}\s]*(?:,|\.\.)[^{}\s]*\}")


class ShellWord(msgspec.Struct, frozen=True):
    """A word of a command. `raw` is the word as written; `text` is its text, None if only the shell knows
    that.

    `has_variable` is true if the word has a variable whose text is not known. `is_glob` is true if the shell
    may put names of files in its place.
    """

    raw: str
    text: str | None
    is_glob: bool = False
    has_variable: bool = False


class Redirection(msgspec.Struct, frozen=True):
    """A file that a command reads from or writes to. Redirections to other descriptors (`2>&1`) are
    left out.
    """

    writes: bool
    target: ShellWord


class ShellCommand(msgspec.Struct, frozen=True):
    """A simple command. `raw` is its text without assignments and redirections.

    `inside` are the constructs around it, such as a loop.
    """

    raw: str
    words: tuple[ShellWord, ...]
    assignments: tuple[tuple[str, ShellWord], ...] = ()
    inside: frozenset[Construct] = frozenset()

    @property
    def name(self) -> str | None:
        """The text of the first word. None if there is no word, or only the shell knows its text."""
        return self.words[0].text if self.words else None


class ShellScript(msgspec.Struct, frozen=True):
    """The commands of a script in their order, its redirections, and the constructs in it.

    `assigned` are the names of the variables that it sets, `statements` the texts of the statements at its
    top level. `is_broken` is true if the script cannot be read.
    """

    commands: tuple[ShellCommand, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    constructs: frozenset[Construct] = frozenset()
    assigned: tuple[str, ...] = ()
    statements: tuple[str, ...] = ()
    is_broken: bool = False


def read_script(text: str, variables: Mapping[str, str]) -> ShellScript:
    """Parse a script. `variables` maps the names of variables to texts that are known before the script
    runs.
    """
    data = text.encode(errors="replace")
    if len(data) > MOST_BYTES:
        return ShellScript(is_broken=True)
    root = _parser().parse(data).root_node
    reader = _Reader(dict(variables))
    reader.read(root, frozenset())
    return ShellScript(
        tuple(reader.commands),
        tuple(reader.redirections),
        frozenset(reader.constructs),
        assigned=tuple(reader.names),
        statements=tuple(text_of(node) for node in root.named_children if node.type != "comment"),
        is_broken=root.has_error,
    )


def parse_bash(text: str) -> Node | None:
    """Parse a script into its syntax tree. Return None if it is longer than MOST_BYTES."""
    data = text.encode(errors="replace")
    return None if len(data) > MOST_BYTES else _parser().parse(data).root_node


def nodes_below(root: Node) -> Iterator[Node]:
    """Yield a node and all nodes below it in the order of the text. Nesting may be deeper than Python's
    stack.
    """
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


@functools.cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_bash.language()))


class _Reader:
    """Walks the tree of a script, and remembers the variables that it sets."""

    def __init__(self, variables: dict[str, str]) -> None:
        self.commands: list[ShellCommand] = []
        self.redirections: list[Redirection] = []
        self.constructs: set[Construct] = set()
        self._variables = variables
        self._assigned: dict[str, str] = {}
        self.names: list[str] = []

    def read(self, root: Node, inside: frozenset[Construct]) -> None:
        """Read a node and all below it; a stack, since scripts nest deeper than Python."""
        stack: list[tuple[Node, frozenset[Construct]]] = [(root, inside)]
        while stack:
            node, around = stack.pop()
            construct = _CONSTRUCTS.get(node.type)
            if construct is not None:
                self.constructs.add(construct)
                around = frozenset[Construct]((*around, construct))
            if node.type == "&":
                self.constructs.add("background")
            if node.type in _COMMANDS:
                self._add(node, around)
            elif node.type == "variable_assignment" and node.parent is not None:
                if node.parent.type not in _COMMANDS:
                    self._assign(node)
            elif node.type == "file_redirect":
                self._redirect(node)
            stack.extend((child, around) for child in reversed(node.children))

    def _add(self, node: Node, inside: frozenset[Construct]) -> None:
        children = [child for child in node.children if not child.type.endswith("redirect")]
        assigned = [child for child in children if child.type == "variable_assignment"]
        if node.type == "command":
            children = [child for child in children if child not in assigned]
        words = tuple(self._word(child) for child in children)
        start = children[0].start_byte - node.start_byte if children else 0
        end = children[-1].end_byte - node.start_byte if children else 0
        raw = (node.text or b"")[start:end].decode(errors="replace")
        assignments = tuple(self._assignment(child) for child in assigned)
        self.commands.append(ShellCommand(raw, words, assignments, inside))

    def _assignment(self, node: Node) -> tuple[str, ShellWord]:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        word = ShellWord("", "") if value is None else self._word(value)
        return ("" if name is None else text_of(name)), word

    def _assign(self, node: Node) -> None:
        name, word = self._assignment(node)
        self.names.append(name)
        if word.text is None:
            self._assigned.pop(name, None)
        else:
            self._assigned[name] = word.text

    def _redirect(self, node: Node) -> None:
        operator = next((child.type for child in node.children if not child.is_named), "")
        target = node.child_by_field_name("destination")
        if target is None or (operator in (">&", "<&") and target.type == "number"):
            return
        self.redirections.append(Redirection(operator not in ("<", "<&"), self._word(target)))

    def _word(self, node: Node) -> ShellWord:
        raw = text_of(node)
        if node.type not in ("raw_string", "string") and _BRACES.search(raw):
            self.constructs.add("braces")
        bare_node = node.children[0] if node.type == "command_name" else node
        if bare_node.type in ("simple_expansion", "expansion"):
            assigned = self._assigned.get(raw.strip("${}"))
            if assigned is not None:
                return ShellWord(raw, assigned, has_variable=True)
        texts = list(self._texts(node))
        known_texts = [text for text in texts if text is not None]
        return ShellWord(
            raw,
            "".join(known_texts) if len(known_texts) == len(texts) else None,
            is_glob=any(_GLOB.search(text_of(inner_node)) for inner_node in _bare(node)),
            has_variable=any(self._is_unknown(inner_node) for inner_node in (bare_node, *_inner(bare_node))),
        )

    def _is_unknown(self, node: Node) -> bool:
        is_variable = node.type in ("simple_expansion", "expansion")
        return is_variable and text_of(node).strip("${}") not in self._variables

    def _texts(self, node: Node) -> Iterator[str | None]:
        """The texts that make up a word; None for a text that only the shell knows."""
        match node.type:
            case "raw_string":
                yield text_of(node)[1:-1]
            case "string":
                for child in node.children:
                    if child.type != '"':
                        yield from self._texts(child)
            case "string_content":
                yield _ESCAPED_IN_QUOTES.sub(lambda match: match[1].replace("\n", ""), text_of(node))
            case "concatenation" | "command_name":
                for child in node.children:
                    yield from self._texts(child)
            case "simple_expansion":
                yield self._variables.get(text_of(node)[1:])
            case "expansion":
                yield self._variables.get(text_of(node)[2:-1])
            case "command_substitution" | "process_substitution" | "arithmetic_expansion" | "ansi_c_string":
                yield None
            case _:
                yield _ESCAPED.sub(lambda match: match[1].replace("\n", ""), text_of(node))


def _inner(node: Node) -> list[Node]:
    """The parts of a word, and those of its strings."""
    parts = node.children if node.type in ("concatenation", "string") else []
    return [child for part in parts for child in (part, *(part.children if part.type == "string" else []))]


def _bare(node: Node) -> list[Node]:
    """The parts of a word outside of quotes."""
    return list(node.children) if node.type in ("concatenation", "command_name") else [node]


def text_of(node: Node) -> str:
    """Return the text of a node."""
    return (node.text or b"").decode(errors="replace")
