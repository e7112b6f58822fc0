"""Merge the settings of all layers, with the provenance of each value.

1. Layers are folded from left to right; the fold is associative if a key has the same kind of value
   throughout.
2. Objects merge key by key; lists are joined without duplicates; otherwise the later value wins, also over a
   value of another kind.
3. `_comment*` keys and the root's `$schema` are not settings.
4. Values that `scope.restrict` dropped are skipped; their provenance stays, marked `ignored`.
5. What no layer sets gets the schema's default. A list that is set replaces the default list.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from nexus_context.config.check import CONFIG_SCHEMA, load_schema, schema_text
from nexus_context.config.fast_check import COMMENT_PREFIX
from nexus_context.errors import Span
from nexus_context.text.json import JsonDocument, Pointer, parse, parse_pointer

BUILT_IN = "built-in"


class ConfigLayer(msgspec.Struct, frozen=True):
    """One layer's checked config.json. `dropped` lists the values that count as absent.

    `depth` is the effect of its `context.ancestor_depth`: the opened folder's sets how far up ancestors are
    read, that of a file inside that folder or above it does not. `folder` is that folder.
    """

    name: str
    document: JsonDocument
    dropped: frozenset[Pointer] = frozenset()
    depth: Literal["sets", "inside", "above"] = "above"
    folder: str = ""


class Provenance(msgspec.Struct, frozen=True, eq=False):
    """One layer's value for one setting, and whether it counts.

    `wins`: the value is, or is part of, the effective one. `ignored`: the layer may not set it (`scope.py`).
    `pointer` is the value's place in the layer's own file; a list item may be at another place when merged.
    """

    layer: str
    document: JsonDocument | None
    pointer: Pointer
    value: Any
    wins: bool
    ignored: bool = False

    @property
    def path(self) -> str:
        """The absolute path of the file; of a built-in default the packaged schema."""
        return self.document.path if self.document is not None else CONFIG_SCHEMA

    @property
    def span(self) -> Span:
        """The range of the value in its file, in code points; located on first use.

        Empty for a value that is not in a file, such as what an agent was granted.
        """
        if self.document is not None:
            return self.document.span(self.pointer)
        if self.layer != BUILT_IN:
            return Span(0, 0)
        return _schema_document().span(_schema_pointer(self.pointer))


class Effective(msgspec.Struct, frozen=True):
    """The merged settings. Do not change them: values are shared with the layers' documents.

    `provenance` has every set value by JSON pointer in layer order: single values, lists, items of lists. A
    list has several winners, one for each layer that adds to it.
    """

    values: dict[str, Any]
    provenance: dict[str, tuple[Provenance, ...]]

    def get(self, pointer: str) -> Any:
        """The value at a JSON pointer such as `/context/ancestor_depth`; None where nothing is set."""
        value: Any = self.values
        for step in parse_pointer(pointer):
            if isinstance(value, dict):
                value = value.get(str(step))
            elif isinstance(value, list) and str(step).isdecimal() and int(step) < len(value):
                value = value[int(step)]
            else:
                return None
        return value


class _Part(msgspec.Struct):
    """One layer's value at one place while merging."""

    layer: ConfigLayer
    pointer: Pointer
    value: Any


def merge(layers: Sequence[ConfigLayer]) -> Effective:
    """The effective settings of layers in order, the most important last, whose values have been checked."""
    provenance: dict[str, list[Provenance]] = {}
    roots = [_Part(layer, (), _settings(layer.document.value)) for layer in layers]
    values = _merge_objects(roots, "", provenance)
    _fill_defaults(values, provenance)
    order = {layer.name: number for number, layer in enumerate(layers)}
    for chain in provenance.values():
        if len(chain) > 1:  # overridden and ignored values were recorded first
            chain.sort(key=lambda entry: order.get(entry.layer, -1))
    return Effective(values, {pointer: tuple(chain) for pointer, chain in provenance.items()})


def replaced(effective: Effective, layer: str, settings: Mapping[str, Any]) -> Effective:
    """The settings with these values of `layer`, by the JSON pointers of members of sections.

    A setting that has that value already keeps its provenance; if nothing is to be replaced, the result is
    the same object. Values of other layers stay in the chain, but no longer win. So do items of a list: one
    that `layer` has, too, joins the chain of that item, every other the chain of the list.
    """
    different = {pointer: value for pointer, value in settings.items() if effective.get(pointer) != value}
    if not different:
        return effective
    values, provenance = dict(effective.values), dict(effective.provenance)
    inside = tuple(f"{pointer}/" for pointer in different)
    within = [place for place in provenance if place.startswith(inside)]
    for pointer, value in different.items():
        section, name = (str(step) for step in parse_pointer(pointer))
        values[section] = {**(values.get(section) or {}), name: value}
        items = [provenance.pop(place) for place in within if place.startswith(f"{pointer}/")]
        winner = Provenance(layer, None, (section, name), value, wins=True)
        provenance |= _overruled(provenance.get(pointer, ()), items, pointer, winner)
    return Effective(values, provenance)


def _overruled(
    chain: Sequence[Provenance], inside: Iterable[Sequence[Provenance]], place: str, winner: Provenance
) -> dict[str, tuple[Provenance, ...]]:
    """The chains of a winning value and of its items, with what was set there before."""
    items = winner.value if isinstance(winner.value, list) else []
    chains: dict[str, list[Provenance]] = {place: [*chain]}
    places: dict[Any, str] = {}
    for index, item in enumerate(items):
        chains[f"{place}/{index}"] = []
        places.setdefault(_identity(item), f"{place}/{index}")
    for entries in inside:
        chains[places.get(_identity(entries[0].value), place)] += entries
    order = {entry.layer: number for number, entry in enumerate(chain)}  # a list comes before its items
    chains[place].sort(key=lambda entry: order.get(entry.layer, -1))
    winners = [winner]
    for index, item in enumerate(items):
        winners.append(Provenance(winner.layer, None, (*winner.pointer, index), item, wins=True))
    return {
        at: (*(_overridden(entry) for entry in entries), last)
        for (at, entries), last in zip(chains.items(), winners, strict=True)
    }


def _overridden(entry: Provenance) -> Provenance:
    return msgspec.structs.replace(entry, wins=False) if entry.wins else entry


def deep_merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Two objects merged by rule 2 of this module; neither is changed."""
    merged = dict(base)
    for key, value in over.items():
        if key not in merged:
            merged[key] = value
            continue
        before = merged[key]
        if isinstance(before, dict) and isinstance(value, dict):
            merged[key] = deep_merge(before, value)
        elif isinstance(before, list) and isinstance(value, list):
            identities = {_identity(item) for item in before}
            merged[key] = [*before, *_new_items(value, identities)]
        else:
            merged[key] = value
    return merged


def _settings(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        return {}
    return {key: item for key, item in value.items() if key != "$schema"}


def _merge_objects(
    parts: list[_Part], prefix: str, provenance: dict[str, list[Provenance]]
) -> dict[str, Any]:
    by_key: dict[str, list[_Part]] = {}
    for part in parts:
        layer, pointer = part.layer, part.pointer
        for key, value in part.value.items():
            if key.startswith(COMMENT_PREFIX):
                continue
            by_key.setdefault(key, []).append(_Part(layer, (*pointer, key), value))
    merged = {}
    restricted = any(part.layer.dropped for part in parts)
    for key, chain in by_key.items():
        place = f"{prefix}/{_escaped(key)}"
        remaining = _without_dropped(chain, place, provenance) if restricted else chain
        if remaining:
            value = _merge_values(remaining, place, provenance)
            if value is not None or remaining[-1].value is None:
                merged[key] = value
    return merged


def _merge_values(parts: list[_Part], place: str, provenance: dict[str, list[Provenance]]) -> Any:
    last = parts[-1].value
    if isinstance(last, dict | list):
        kind = dict if isinstance(last, dict) else list
        start = len(parts)
        while start and isinstance(parts[start - 1].value, kind):
            start -= 1
    else:
        kind, start = None, len(parts) - 1
    for part in parts[:start]:
        _record_leaves(part, place, provenance, ignored=False)
    winners = parts[start:]
    if kind is dict:
        return _merge_objects(winners, place, provenance) or _empty_object(winners, place, provenance)
    _record(winners, place, provenance)
    return _merge_lists(winners, place, provenance) if kind is list else last


def _empty_object(
    parts: list[_Part], place: str, provenance: dict[str, list[Provenance]]
) -> dict[str, Any] | None:
    """An object without settings is a value itself; None if all its settings were dropped."""
    empty = [part for part in parts if all(key.startswith(COMMENT_PREFIX) for key in part.value)]
    _record([_Part(part.layer, part.pointer, {}) for part in empty], place, provenance)
    return {} if empty else None


def _merge_lists(parts: list[_Part], place: str, provenance: dict[str, list[Provenance]]) -> list[Any]:
    merged: list[Any] = []
    positions: dict[Any, int] = {}
    for number, part in enumerate(parts):
        for index, item in enumerate(part.value):
            identity = _identity(item)
            wins = identity not in positions or number == 0  # the first list stays as it is
            if wins:
                merged.append(item)
                position = len(merged) - 1
            else:
                position = positions[identity]
            positions.setdefault(identity, position)
            entry = Provenance(part.layer.name, part.layer.document, (*part.pointer, index), item, wins=wins)
            provenance.setdefault(f"{place}/{position}", []).append(entry)
    return merged


def _without_dropped(parts: list[_Part], place: str, provenance: dict[str, list[Provenance]]) -> list[_Part]:
    remaining = []
    for part in parts:
        if part.pointer in part.layer.dropped:
            _record_leaves(part, place, provenance, ignored=True)
        else:
            remaining.append(part)
    return remaining


def _record(parts: Iterable[_Part], place: str, provenance: dict[str, list[Provenance]]) -> None:
    entries = [
        Provenance(part.layer.name, part.layer.document, part.pointer, part.value, wins=True)
        for part in parts
    ]
    if entries:
        provenance[place] = [*provenance.get(place, ()), *entries]


def _record_leaves(
    part: _Part, place: str, provenance: dict[str, list[Provenance]], *, ignored: bool
) -> None:
    """Record a value that does not count; of an object, everything in it."""
    if isinstance(part.value, dict) and part.value:
        for key, value in part.value.items():
            if not key.startswith(COMMENT_PREFIX):
                child = _Part(part.layer, (*part.pointer, key), value)
                _record_leaves(child, f"{place}/{_escaped(key)}", provenance, ignored=ignored)
        return
    entry = Provenance(
        part.layer.name, part.layer.document, part.pointer, part.value, wins=False, ignored=ignored
    )
    provenance.setdefault(place, []).append(entry)


def _new_items(items: list[Any], identities: set[Any]) -> list[Any]:
    new = []
    for item in items:
        identity = _identity(item)
        if identity not in identities:
            identities.add(identity)
            new.append(item)
    return new


def _identity(item: Any) -> Any:
    """Equal for equal JSON values: 1, 1.0 and true differ, the order of keys does not count."""
    if isinstance(item, str):
        return item
    if isinstance(item, dict):
        return (dict, frozenset((key, _identity(value)) for key, value in item.items()))
    if isinstance(item, list):
        return (list, tuple(_identity(value) for value in item))
    return (type(item), item)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1") if "~" in key or "/" in key else key


def _fill_defaults(values: dict[str, Any], provenance: dict[str, list[Provenance]]) -> None:
    for pointer, place, default, entry in _defaults():
        _fill(values, pointer, place, default, entry=entry, provenance=provenance)
    for section in ("agents", "models"):
        named = values.get(section)
        for name, value in named.items() if isinstance(named, dict) else ():
            if isinstance(value, dict):
                prefix = f"/{section}/{_escaped(name)}"
                for pointer, place, default, entry in _named_defaults(section):
                    _fill(value, pointer, prefix + place, default, entry=entry, provenance=provenance)


def _fill(
    values: dict[str, Any],
    pointer: tuple[str, ...],
    place: str,
    default: Any,
    entry: Provenance,
    provenance: dict[str, list[Provenance]],
) -> None:
    target: Any = values
    for step in pointer[:-1]:
        target = target.setdefault(step, {})
        if not isinstance(target, dict):
            return
    if pointer[-1] in target:
        return
    # a copy, so that no caller can change the shared default
    target[pointer[-1]] = default.copy() if isinstance(default, dict | list) else default
    provenance[place] = [entry, *provenance.get(place, [])]
    for index, item in enumerate(default) if isinstance(default, list) else ():
        item_entry = Provenance(BUILT_IN, None, (*entry.pointer, index), item, wins=True)
        provenance[f"{place}/{index}"] = [item_entry]


Defaults = tuple[tuple[tuple[str, ...], str, Any, Provenance], ...]


@functools.cache
def _defaults() -> Defaults:
    return tuple(_defaults_of(load_schema(CONFIG_SCHEMA), (), ()))


@functools.cache
def _named_defaults(section: str) -> Defaults:
    node = load_schema(CONFIG_SCHEMA)["properties"][section]["additionalProperties"]
    return tuple(_defaults_of(node, (), (section, "")))


def _defaults_of(
    node: dict[str, Any], pointer: tuple[str, ...], base: tuple[str, ...]
) -> Iterable[tuple[tuple[str, ...], str, Any, Provenance]]:
    for key, child in node.get("properties", {}).items():
        place = (*pointer, key)
        if "default" in child:
            entry = Provenance(BUILT_IN, None, (*base, *place), child["default"], wins=True)
            yield place, "/" + "/".join(place), child["default"], entry
        else:
            yield from _defaults_of(child, place, base)


@functools.cache
def _schema_document() -> JsonDocument:
    return parse(CONFIG_SCHEMA, schema_text(CONFIG_SCHEMA))


def _schema_pointer(pointer: Pointer) -> Pointer:
    """The pointer of a default, or of an item of it, in the schema; an empty step stands for any name."""
    steps: list[str | int] = []
    for step in pointer:
        if isinstance(step, str):
            steps += ["properties", step] if step else ["additionalProperties"]
    return (*steps, "default", *(step for step in pointer if isinstance(step, int)))
