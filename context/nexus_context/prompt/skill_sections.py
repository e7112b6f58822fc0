"""What the prompt says of skills: an index of all, and the texts of the active ones.

1. The index has name, description and path of each skill that the request does not leave out, in the order of
   `Layers.skills`. The model reads a skill's file, or the request activates the skill.
2. Active skills are those that the request names, in the order of the index. A name outside the index is an
   error. A request without names activates none.
3. The text of an active skill is sent as it is: its imports are not followed. Its tools and examples come
   after it.
"""

from collections.abc import Sequence

from nexus_context.config import fixes
from nexus_context.config.patterns import Patterns
from nexus_context.errors import RequestError
from nexus_context.layers.model import Layers, LayerSkill
from nexus_context.prompt import texts
from nexus_context.prompt.sections import Facts, Part, join_groups
from nexus_context.prompt.texts import Piece

SECTION = "skills"
MOST_NAMED = 20  # of the offered skills in an error


def offered_skills(layers: Layers, facts: Facts) -> tuple[LayerSkill, ...]:
    """The skills that the request does not leave out."""
    if facts.skip_skills:
        return ()
    if facts.skill_filter is None:
        return layers.skills
    patterns = Patterns(facts.skill_filter)
    return tuple(one for one in layers.skills if patterns.matches(one.skill.name))


def activated_skills(layers: Layers, facts: Facts) -> tuple[LayerSkill, ...]:
    """The active skills of a request; RequestError for a name that is not among the offered ones."""
    if facts.skip_skills:
        return ()
    skills = offered_skills(layers, facts)
    names = [one.skill.name for one in skills]
    for name in facts.skills:
        if name not in names:
            raise RequestError(_unknown(name, names), code="unknown-skill")
    return tuple(one for one in skills if one.skill.name in facts.skills)


def section(layers: Layers, facts: Facts) -> list[Part]:
    """The index and the texts of the active skills; empty if no skill is offered."""
    skills = offered_skills(layers, facts)
    active = bodies(layers, activated_skills(layers, facts))
    return join_groups([_index(skills), active], "\n\n") if skills else []


def bodies(layers: Layers, skills: Sequence[LayerSkill]) -> list[Part]:
    """The texts of skills, each under its heading."""
    return join_groups((_body(layers, one) for one in skills), "\n\n")


def _index(skills: Sequence[LayerSkill]) -> list[Part]:
    """The list, a part for each skill."""
    heading = Part(SECTION, None, "Skills", texts.fill("skills", {}))
    return join_groups([[heading], join_groups(([_row(one)] for one in skills), "\n")], "\n\n")


def _row(one: LayerSkill) -> Part:
    skill = one.skill
    row = texts.text("skill_row").format(
        name=skill.name, description=skill.description, path=_one_line(skill.path)
    )
    return Part(SECTION, one.layer, skill.name, [Piece(row, skill.path, skill.description_span)])


def _body(layers: Layers, one: LayerSkill) -> list[Part]:
    skill = one.skill
    content = layers.texts.get(skill.path, "")
    span = texts.trimmed(content, skill.body)
    if span.start == span.end:
        return []
    name = [Piece(skill.name, skill.path, skill.name_span)]
    heading = texts.retraced(texts.fill("skill_active", {"name": name}), "skill_active", skill.path)
    path = [Piece(_one_line(skill.path), skill.path)]
    body = texts.fill("source", {"path": path, "content": [texts.cut(skill.path, content, span)]})
    pieces = [*heading, Piece("\n", skill.path), *texts.retraced(body, "source", skill.path)]
    if skill.allowed_tools:
        sentence = texts.text("skill_tools").format(tools=", ".join(skill.allowed_tools))
        pieces.append(Piece(f"\n\n{sentence}", skill.path, skill.tools_span))
    if skill.examples:
        rows = "\n".join(f"- {example}" for example in skill.examples)
        sentence = texts.text("skill_examples").format(rows=rows)
        pieces.append(Piece(f"\n\n{sentence}", skill.path, skill.examples_span))
    return [Part(SECTION, one.layer, skill.name, pieces)]


def _one_line(path: str) -> str:
    """A path on one line; it keeps its blanks."""
    return path.replace("\r", " ").replace("\n", " ")


def _unknown(name: str, names: Sequence[str]) -> str:
    near = fixes.meant(name, names)
    if near is not None:
        return f"There is no skill {fixes.quoted(name)}; did you mean {near}?"
    listed = ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")
    return f"There is no skill {fixes.quoted(name)}. Skills that this request may use: {listed or 'none'}."
