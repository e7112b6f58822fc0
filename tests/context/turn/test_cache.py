"""Assembled values are reused while they are young, the least recently used goes first, and hits
are counted.
"""

from nexus_context.turn.cache import AssemblyCache, Statistics


def check(steps: str, expected: str, *, ttl: float = 60, entries: int = 3) -> None:
    """Steps: `a=1` puts, `a` gets, `+30` lets seconds pass, `!` invalidates; expected are the answers."""
    now = 0.0
    cache: AssemblyCache[str] = AssemblyCache(lambda: now, ttl=ttl, entries=entries)
    answers = []
    for step in steps.split():
        key, put, value = step.partition("=")
        if step == "!":
            cache.invalidate()
        elif step.startswith("+"):
            now += float(step)
        elif put:
            cache.put(key, value)
        else:
            answers.append(cache.get(key) or "-")
    found = cache.statistics()
    assert f"{' '.join(answers)} {found.hits}/{found.misses}/{found.entries}" == expected


def test_what_was_put_is_found() -> None:
    check("a a=1 a a b", "- 1 1 - 2/2/1")
    check("a=1 a=2 a", "2 1/0/1")


def test_it_is_used_for_a_minute_however_often_it_is_used() -> None:
    check("a=1 +30 a +29 a +1 a a", "1 1 - - 2/2/0")
    check("a=1 +59 a=2 +59 a", "2 1/0/1")


def test_the_one_used_longest_ago_goes_first() -> None:
    check("a=1 b=2 c=3 d=4 a b c d", "- 2 3 4 3/1/3")
    check("a=1 b=2 c=3 a d=4 a b c d", "1 1 - 3 4 4/1/3")


def test_all_are_forgotten_at_once_and_the_figures_stay() -> None:
    check("a=1 b=2 a ! a b", "1 - - 1/2/0")


def test_figures_of_several_caches_add_up() -> None:
    assert Statistics(1, 2, 3) + Statistics(10, 20, 30) == Statistics(11, 22, 33)
