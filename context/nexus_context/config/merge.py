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

    `depth` is the effect of its `context.ancestor_depth`. That of the opened folder sets how far up ancestors
    are read; that of a file inside the folder, or above it, does not. `folder` is the opened folder.
    """

    name: str
    document: JsonDocument
    dropped: frozenset[Pointer] = frozenset()
    depth: Literal["sets", "inside", "above"] = "above"
    folder: str = ""


class Provenance(msgspec.Struct, frozen=True, eq=False):
    """One layer's value for one setting, and whether it counts.

    `wins` is true if the value is the effective one, or a part of it. `ignored` is true if the layer may not
    set it (`scope`). `pointer` is the value's place in the layer's own file; a list item may be at another
    place when merged.
    """

    layer: str
    document: JsonDocument | None
    pointer: Pointer
    value: Any
    wins: bool
    ignored: bool = False

    @property
    def path(self) -> str:
        """The absolute path of the file that sets the value.

        A built-in default has that of the packaged schema.
        """
        return self.document.path if self.document is not None else CONFIG_SCHEMA

    @property
    def span(self) -> Span:
        """The range of the value in its file, in code points. It is located on first use.

        Empty for a value that is not in a file, such as what an agent was granted.
        """
        if self.document is not None:
            return self.document.span(self.pointer)
        if self.layer != BUILT_IN:
            return Span(0, 0)
        return _schema_document().span(_schema_pointer(self.pointer))


class Effective(msgspec.Struct, frozen=True):
    """The merged settings. Do not change them: values are shared with the layers' documents.

    `provenance` maps JSON pointers of values, lists and items of lists to what each layer sets there, in
    layer order. A list has several winners, one for each layer that adds to it.
    """

    values: dict[str, Any]
    provenance: dict[str, tuple[Provenance, ...]]

    def get(self, pointer: str) -> Any:
        """Return the value at a JSON pointer such as `/context/ancestor_depth`.

        None if nothing is set there.
        """
        value: Any = self.values
        for step in parse_pointer(pointer):
            if isinstance(value, dict):
                value = value.get(str(step))
            elif isinstance(value, list) and str(step).isdecimal() and int(step) < len(value):
                value = value[int(step)]
            else:
                return None
        return value


class _LayerValue(msgspec.Struct):
    """One layer's value at one place while merging."""

    layer: ConfigLayer
    pointer: Pointer
    value: Any


def merge(layers: Sequence[ConfigLayer]) -> Effective:
    """Merge the settings of layers whose values have been checked. The most important layer comes last."""
    provenance: dict[str, list[Provenance]] = {}
    roots = [_LayerValue(layer, (), _settings(layer.document.value)) for layer in layers]
    values = _merge_objects(roots, "", provenance)
    _fill_defaults(values, provenance)
    order = {layer.name: number for number, layer in enumerate(layers)}
    for chain in provenance.values():
        if len(chain) > 1:  # overridden and ignored values were recorded first
            chain.sort(key=lambda entry: order.get(entry.layer, -1))
    return Effective(values, {pointer: tuple(chain) for pointer, chain in provenance.items()})


def replaced(effective: Effective, layer: str, settings: Mapping[str, Any]) -> Effective:
    """Return the settings with other values for some of them, which a layer named `layer` sets.

    `settings` maps JSON pointers of members of sections to the values. A setting that has that value already
    keeps its provenance; if nothing is to be replaced, the result is the same object. Values of other layers
    stay in the provenance, but no longer win. So do items of lists: one that the new list has, too, stays
    with that item, every other moves to the list itself.
    """
    different = {pointer: value for pointer, value in settings.items() if effective.get(pointer) != value}
    if not different:
        return effective
    values, provenance = dict(effective.values), dict(effective.provenance)
    inside = tuple(f"{pointer}/" for pointer in different)
    within = [setting_pointer for setting_pointer in provenance if setting_pointer.startswith(inside)]
    for pointer, value in different.items():
        section, name = (str(step) for step in parse_pointer(pointer))
        values[section] = {**(values.get(section) or {}), name: value}
        items = [
            provenance.pop(setting_pointer)
            for setting_pointer in within
            if setting_pointer.startswith(f"{pointer}/")
        ]
        winner = Provenance(layer, None, (section, name), value, wins=True)
        provenance |= _overruled(provenance.get(pointer, ()), items, pointer, winner)
    return Effective(values, provenance)


def _overruled(
    chain: Sequence[Provenance],
    inside: Iterable[Sequence[Provenance]],
    setting_pointer: str,
    winner: Provenance,
) -> dict[str, tuple[Provenance, ...]]:
    """The chains of a winning value and of its items, with what was set there before."""
    items = winner.value if isinstance(winner.value, list) else []
    chains: dict[str, list[Provenance]] = {setting_pointer: [*chain]}
    item_pointers: dict[Any, str] = {}
    for index, item in enumerate(items):
        chains[f"{setting_pointer}/{index}"] = []
        item_pointers.setdefault(_identity(item), f"{setting_pointer}/{index}")
    for entries in inside:
        chains[item_pointers.get(_identity(entries[0].value), setting_pointer)] += entries
    order = {entry.layer: number for number, entry in enumerate(chain)}  # a list comes before its items
    chains[setting_pointer].sort(key=lambda entry: order.get(entry.layer, -1))
    winners = [winner]
    for index, item in enumerate(items):
        winners.append(Provenance(winner.layer, None, (*winner.pointer, index), item, wins=True))
    return {
        item_pointer: (*(_overridden(entry) for entry in entries), item_winner)
        for (item_pointer, entries), item_winner in zip(chains.items(), winners, strict=True)
    }


def _overridden(entry: Provenance) -> Provenance:
    return msgspec.structs.replace(entry, wins=False) if entry.wins else entry


def deep_merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Merge two objects by rule 2 of this module. Neither of them is changed."""
    merged = dict(base)
    for key, value in over.items():
        if key not in merged:
            merged[key] = value
            continue
        existing = merged[key]
        if isinstance(existing, dict) and isinstance(value, dict):
            merged[key] = deep_merge(existing, value)
        elif isinstance(existing, list) and isinstance(value, list):
            identities = {_identity(item) for item in existing}
            merged[key] = [*existing, *_new_items(value, identities)]
        else:
            merged[key] = value
    return merged


def _settings(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        return {}
    return {key: item for key, item in value.items() if key != "$schema"}


def _merge_objects(
    layer_values: list[_LayerValue], prefix: str, provenance: dict[str, list[Provenance]]
) -> dict[str, Any]:
    by_key: dict[str, list[_LayerValue]] = {}
    for layer_value in layer_values:
        layer, pointer = layer_value.layer, layer_value.pointer
        for key, value in layer_value.value.items():
            if key.startswith(COMMENT_PREFIX):
                continue
            by_key.setdefault(key, []).append(_LayerValue(layer, (*pointer, key), value))
    merged = {}
    restricted = any(layer_value.layer.dropped for layer_value in layer_values)
    for key, chain in by_key.items():
        setting_pointer = f"{prefix}/{_escaped(key)}"
        remaining = _without_dropped(chain, setting_pointer, provenance) if restricted else chain
        if remaining:
            value = _merge_values(remaining, setting_pointer, provenance)
            if value is not None or remaining[-1].value is None:
                merged[key] = value
    return merged


def _merge_values(
    layer_values: list[_LayerValue], setting_pointer: str, provenance: dict[str, list[Provenance]]
) -> Any:
    last_value = layer_values[-1].value
    if isinstance(last_value, dict | list):
        kind = dict if isinstance(last_value, dict) else list
        start = len(layer_values)
        while start and isinstance(layer_values[start - 1].value, kind):
            start -= 1
    else:
        kind, start = None, len(layer_values) - 1
    for layer_value in layer_values[:start]:
        _record_leaves(layer_value, setting_pointer, provenance, ignored=False)
    winners = layer_values[start:]
    if kind is dict:
        return _merge_objects(winners, setting_pointer, provenance) or _empty_object(
            winners, setting_pointer, provenance
        )
    _record(winners, setting_pointer, provenance)
    return _merge_lists(winners, setting_pointer, provenance) if kind is list else last_value


def _empty_object(
    layer_values: list[_LayerValue], setting_pointer: str, provenance: dict[str, list[Provenance]]
) -> dict[str, Any] | None:
    """An object without settings is a value itself; None if all its settings were dropped."""
    empty = [
        layer_value
        for layer_value in layer_values
        if all(key.startswith(COMMENT_PREFIX) for key in layer_value.value)
    ]
    _record(
        [_LayerValue(layer_value.layer, layer_value.pointer, {}) for layer_value in empty],
        setting_pointer,
        provenance,
    )
    return {} if empty else None


def _merge_lists(
    layer_values: list[_LayerValue], setting_pointer: str, provenance: dict[str, list[Provenance]]
) -> list[Any]:
    merged: list[Any] = []
    positions: dict[Any, int] = {}
    for number, layer_value in enumerate(layer_values):
        for index, item in enumerate(layer_value.value):
            identity = _identity(item)
            wins = identity not in positions or number == 0  # the first list stays as it is
            if wins:
                merged.append(item)
                position = len(merged) - 1
            else:
                position = positions[identity]
            positions.setdefault(identity, position)
            entry = Provenance(
                layer_value.layer.name,
                layer_value.layer.document,
                (*layer_value.pointer, index),
                item,
                wins=wins,
            )
            provenance.setdefault(f"{setting_pointer}/{position}", []).append(entry)
    return merged


def _without_dropped(
    layer_values: list[_LayerValue], setting_pointer: str, provenance: dict[str, list[Provenance]]
) -> list[_LayerValue]:
    remaining = []
    for layer_value in layer_values:
        if layer_value.pointer in layer_value.layer.dropped:
            _record_leaves(layer_value, setting_pointer, provenance, ignored=True)
        else:
            remaining.append(layer_value)
    return remaining


def _record(
    layer_values: Iterable[_LayerValue], setting_pointer: str, provenance: dict[str, list[Provenance]]
) -> None:
    entries = [
        Provenance(
            layer_value.layer.name,
            layer_value.layer.document,
            layer_value.pointer,
            layer_value.value,
            wins=True,
        )
        for layer_value in layer_values
    ]
    if entries:
        provenance[setting_pointer] = [*provenance.get(setting_pointer, ()), *entries]


def _record_leaves(
    layer_value: _LayerValue, setting_pointer: str, provenance: dict[str, list[Provenance]], *, ignored: bool
) -> None:
    """Record a value that does not count; of an object, everything in it."""
    if isinstance(layer_value.value, dict) and layer_value.value:
        for key, value in layer_value.value.items():
            if not key.startswith(COMMENT_PREFIX):
                child = _LayerValue(layer_value.layer, (*layer_value.pointer, key), value)
                _record_leaves(child, f"{setting_pointer}/{_escaped(key)}", provenance, ignored=ignored)
        return
    entry = Provenance(
        layer_value.layer.name,
        layer_value.layer.document,
        layer_value.pointer,
        layer_value.value,
        wins=False,
        ignored=ignored,
    )
    provenance.setdefault(setting_pointer, []).append(entry)


def _new_items(items: list[Any], identities: set[Any]) -> list[Any]:
    new_items = []
    for item in items:
        identity = _identity(item)
        if identity not in identities:
            identities.add(identity)
            new_items.append(item)
    return new_items


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
    for pointer, setting_pointer, default, entry in _defaults():
        _fill(values, pointer, setting_pointer, default, entry=entry, provenance=provenance)
    for section in ("agents", "models"):
        named = values.get(section)
        for name, value in named.items() if isinstance(named, dict) else ():
            if isinstance(value, dict):
                prefix = f"/{section}/{_escaped(name)}"
                for pointer, setting_pointer, default, entry in _named_defaults(section):
                    _fill(
                        value, pointer, prefix + setting_pointer, default, entry=entry, provenance=provenance
                    )


def _fill(
    values: dict[str, Any],
    pointer: tuple[str, ...],
    setting_pointer: str,
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
    provenance[setting_pointer] = [entry, *provenance.get(setting_pointer, [])]
    for index, item in enumerate(default) if isinstance(default, list) else ():
        item_entry = Provenance(BUILT_IN, None, (*entry.pointer, index), item, wins=True)
        provenance[f"{setting_pointer}/{index}"] = [item_entry]


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
        child_pointer = (*pointer, key)
        if "default" in child:
            entry = Provenance(BUILT_IN, None, (*base, *child_pointer), child["default"], wins=True)
            yield child_pointer, "/" + "/".join(child_pointer), child["default"], entry
        else:
            yield from _defaults_of(child, child_pointer, base)


@functools.cache
def _schema_document() -> JsonDocument:
    return parse(CONFIG_SCHEMA, schema_text(CONFIG_SCHEMA))


def _schema_pointer(pointer: Pointer) -> Pointer:
    """Where the schema defines a default, or an item of one; an empty step stands for any name."""
    steps: list[str | int] = []
    for step in pointer:
        if isinstance(step, str):
            steps += ["properties", step] if step else ["additionalProperties"]
    return (*steps, "default", *(step for step in pointer if isinstance(step, int)))
