"""Finds sentences that matter: user instructions and corrections, assistant decisions, open work.

1. A text is split into sentences at line ends and after `.`, `!`, `?` and their Chinese forms. Code fences
   are left out.
2. The words of a sentence decide. English, Russian and Chinese words are covered in full, and the most common
   words of German, French and Spanish. Without a known word, or in another script, a short message counts
   weakly.
3. Nothing is rewritten: sentences stay verbatim except for surrounding white space.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

LONGEST_SENTENCE = 600
"""Characters of the longest sentence that stays whole; a longer one is cut at a space, with a mark."""
MOST_READ = 40_000
"""Characters of a message's text that are read, from its beginning."""

CORRECTION, STRONG, WEAK = 3.0, 2.5, 1.0
REPORTED, REMARKED, PASSING = 1.2, 0.6, 0.3
"""Weights of a sentence without a cue in a turn's last message, elsewhere, and elsewhere without a name."""


class Cue(NamedTuple):
    """A sentence and its weight."""

    text: str
    weight: float


def instructions_in(text: str) -> list[Cue]:
    """Find the orders, bans, wishes and corrections in a user message."""
    cues = []
    for number, sentence in enumerate(sentences_of(text)):
        if sentence.endswith((":", "：")) or _NO_ORDER.match(sentence):
            continue
        if number == 0 and _CORRECTION.match(sentence) and len(sentence) > _BARE_NO:
            cues.append(Cue(sentence, CORRECTION))
        elif _STRONG.search(sentence):
            cues.append(Cue(sentence, STRONG))
        elif _WEAK.search(sentence) or (len(text) < 300 and _FOREIGN.search(sentence)):
            cues.append(Cue(sentence, WEAK))
    return cues


def decisions_in(text: str) -> list[Cue]:
    """Find what an assistant message decides, finds out or reports as done. Questions and announcements are
    left out.
    """
    cues = []
    for sentence in sentences_of(text):
        if sentence.endswith(("?", "？", ":", "：")) or len(sentence) < 12:
            continue
        if _DECIDED.search(sentence):
            cues.append(Cue(sentence, 2.0))
        elif _DONE.search(sentence):
            cues.append(Cue(sentence, 1.5))
        elif _PLANNED.search(sentence) and not _IDLE.search(sentence):
            cues.append(Cue(sentence, 0.5))
    return cues


def findings_in(text: str, *, is_report: bool) -> list[Cue]:
    """Find decisions and findings in an assistant message. Set `is_report` for a turn's last message, whose
    other sentences then weigh more.

    Other sentences count if they say where something comes from, or if they name a path, a symbol or a
    number. Remarks that do neither weigh least.
    """
    cues = {cue.text: cue for cue in decisions_in(text)}
    for sentence in sentences_of(text):
        if sentence in cues or sentence.endswith(("?", "？", ":", "：")) or len(sentence) < 12:
            continue
        if _IDLE.search(sentence) or _OPENING.match(sentence) or _OPEN.search(sentence):
            continue
        if _LOCATED.search(sentence):
            cues[sentence] = Cue(sentence, REPORTED)
        elif _NAMES.search(sentence):
            cues[sentence] = Cue(sentence, REPORTED if is_report else REMARKED)
        else:
            cues[sentence] = Cue(sentence, REMARKED if is_report else PASSING)
    return list(cues.values())


def open_in(text: str) -> list[str]:
    """Find the tasks that an assistant message leaves open."""
    return [
        sentence
        for sentence in sentences_of(text)
        if _OPEN.search(sentence) and not sentence.endswith(("?", "？", ":", "："))
    ]


def boxes_in(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the items of check lists in a text, each with whether it is checked."""
    for match in _BOX.finditer(text[:MOST_READ]):
        yield match["task"].strip(), match["mark"] != " "


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text, without code fences, quote marks and list marks."""
    text = _FENCE.sub("\n", text[:MOST_READ])
    sentences = []
    for line in text.splitlines():
        line = _MARK.sub("", line).strip()
        if line and not line.startswith(("<", "|", "```", "[Session started")):
            sentences += [
                _bounded_sentence(part.strip()) for part in _END.split(line) if len(part.strip()) > 1
            ]
    return sentences


def _bounded_sentence(sentence: str) -> str:
    if len(sentence) <= LONGEST_SENTENCE:
        return sentence
    head = sentence[:LONGEST_SENTENCE]
    return f"{head[: head.rfind(' ') + 1 or LONGEST_SENTENCE].rstrip()} […]"


_FENCE = re.compile(r"^[ ]{0,3}```.*?(?:^[ ]{0,3}```|\Z)", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"^\s*(?:[-*•>]+\s+|\d{1,3}[.)]\s+|#{1,6}\s+)*(?:\[[ xX]\]\s+)?")
_END = re.compile(r"(?<=[.!?])\s+(?=[^a-z])|(?<=[。！？；])")
_BOX = re.compile(r"^[ \t]{0,12}[-*+] \[(?P<mark>[ xX])\] (?P<task>[^\n]{1,400})$", re.MULTILINE)
_BARE_NO = 12  # characters: `No, thanks.` corrects nothing
_CORRECTION = re.compile(
    r"""(?ix)^(?:no\b(?!\s+(?:problem|worries|rush))|nope|wrong|not\ (?:that|like|what)|actually|stop|wait
    |revert|undo
    |instead|that(?:'s|\ is|\ was)?\ (?:not|wrong)|i\ (?:said|meant|asked|told)|you\ (?:forgot|missed|broke
    |should)
    |нет\b|не\ (?:так|то|надо|нужно)|стоп|неправильно|верни|отмени|я\ (?:же\ )?(?:просил|сказал|имел)
    |不对|不是|错了|停|别|撤销|我说|应该是
    |nein\b|falsch|doch|non\b|faux|incorrecto)"""
)
_NO_ORDER = re.compile(
    r"""(?ix)^(?:(?:sorry|unfortunately|i['’]m\ sorry|i\ apologize)\b[^.]{0,20}\bi|i)
    \ (?:also\ |really\ |actually\ |still\ )?(?:do\ not|don['’]t|cannot|can['’]t)\ (?:\w+\ )?
    (?:have|remember|know|think|recall|see|understand|mind|believe)\b"""
)
_STRONG = re.compile(
    r"""(?ix)\b(?:must(?:n't)?|never|always|do\ not|don['’]?t|cannot|can['’]t|shall|only|required?
    |make\ sure|ensure
    |important(?:ly)?|avoid|instead\ of|rather\ than|without|at\ (?:most|least)|no\ more\ than
    |from\ now\ on|remember
    |unless|under\ no|stick\ (?:to|with)|keep|leave\ .{1,40}\ (?:alone|as)|has\ to|have\ to|limit(?:ed)?\ to
    |not\ allowed|forbidden|prefer)\b
    |\b(?:обязательно|никогда|всегда|нельзя|долж(?:ен|на|но|ны)|только|запрещ\w*|важно|без|вместо
    |избегай\w*|помни
    |оставь|не\ (?:надо|нужно|используй\w*|трогай\w*|меняй\w*|добавляй\w*|удаляй\w*|делай\w*|забудь\w*
    |стоит))\b
    |必须|一定要|务必|不要|不能|不得|不许|禁止|总是|始终|永远|只能|只要|只用|别|避免|确保|保证|注意|记住
    |不准|请勿
    |\b(?:muss|müssen|nie(?:mals)?|immer|nicht|nur|ohne|kein\w*|doit|jamais|toujours|ne\ .{1,20}\ pas|sans)\b
    |\b(?:nunca|siempre|debe|solo|sin)\b"""
)
_WEAK = re.compile(
    r"""(?ix)\b(?:please|should(?:n't)?|use|want|need|would\ like|i['’]d\ like|let['’]s|add|change|fix
    |implement|write
    |create|remove|delete|rename|refactor|update|make|run|test|check|find|look|explain|show|move|replace
    |set|cancel
    |book)\b
    |\b(?:пожалуйста|нужно|надо|хочу|сделай\w*|добавь\w*|исправь\w*|используй\w*|напиши\w*|удали\w*|проверь\w*
    |измени\w*|запусти\w*|давай\w*|можешь|следует|перепиши\w*|создай\w*|найди\w*|покажи\w*|обнови\w*
    |замени\w*)\b
    |请|需要|应该|想要|希望|使用|改成|改为|添加|增加|修复|修改|删除|实现|写|检查|运行|帮我|把
    |\b(?:bitte|soll(?:te)?|verwende|s['’]il|il\ faut|por\ favor|usa)\b"""
)
_FOREIGN = re.compile(r"[^\x00-\u024f\u2000-\u206f]{2}")
_DECIDED = re.compile(
    r"""(?ix)\b(?:decided|decision|we(?:['’]ll|\ will)?\ use|going\ with|go\ with|cho(?:se|sen)|opted|because
    |root\ cause|turns\ out|the\ (?:fix|problem|issue|bug|cause|reason|solution)\ (?:is|was)|instead\ of
    |rather\ than
    |trade-?off|agreed|settled|does(?:\ not|n['’]t)\ work|won['’]t\ work|not\ possible|cannot\ be)\b
    |\b(?:реши\w{1,4}|решено|выбра\w{1,3}|выбор|будем|используем|потому\ что|так\ как|причина|проблема\ в
    |оказалось|вместо)\b
    |决定|选择|采用|选用|因为|由于|原因|问题(?:在于|是|出在)|而不是|改用|结论
    |\b(?:entschieden|weil|beschlossen|décidé|parce\ que|decidido|porque)\b"""
)
_DONE = re.compile(
    r"""(?ix)\b(?:(?:has|have)\ (?:now\ )?been|i(?:['’]ve|\ have)\ (?!to\b)\w+|success(?:ful(?:ly)?)?|(?:is
    |are)\ now
    |now\ (?:pass|work|use)\w*|all\ (?:\w+\ )?tests\ pass|fixed|implemented|completed|verified|confirmed
    |refactored
    |merged|committed)\b
    |\b(?:исправ(?:ил|лен)\w*|добав(?:ил|лен)\w*|созда(?:л|н)\w*|обнов(?:ил|лен)\w*|готово|завершен\w*
    |удал(?:ил|ен)\w*
    |проходят)\b
    |已(?:经)?(?:修复|添加|完成|更新|创建|修改|删除|实现|通过)|修好了|完成了|搞定"""
)
_PLANNED = re.compile(
    r"""(?ix)\b(?:i['’]ll|i\ will|we['’]ll|we\ will|let['’]s|plan\ is)\b|\b(?:я|мы)\ \w+(?:ю|у|ем|им)\b
    |我(?:会|将)|我们(?:会|将)"""
)
_IDLE = re.compile(
    r"""(?ix)\b(?:i['’]ll|i\ will|let['’]s|we['’]ll)\s+(?:(?:now|first|then|just|also|start\ by|begin\ by)\ )*
    (?:check\w*|look\w*|read\w*|run\w*|need|help|search\w*|see|start|take|examin\w*|explor\w*|investigat\w*
    |try|find
    |view|open|list|inspect\w*|assist|proceed|go\ ahead)\b"""
)
_OPENING = re.compile(
    r"(?i)(?:(?:let\ me|now\ (?:i|let)|first,?\ |next,?\ (?:i|let)|looking|checking|running|reading|searching"
    r"|great|perfect|good|ok|okay|sure|done|all\ set|you're\ right|i\ see)\b)[^.]{0,60}[.!]?$"
)
_LOCATED = re.compile(
    r"""(?ix)\b(?:the|an?|this|that)\ [\w'’\ -]{2,40}\ (?:is|was|are|were|comes?|came|lies|sits|happens)
    \ (?:only\ )?(?:in|from|inside|at|due\ to|caused\ by|when|before|after)\b
    |\b(?:culprit|(?:this|that|which)\ means|leaks?\ in
    |never\ (?:called|closed|reset|released|set|awaited))\b"""
)
_NAMES = re.compile(r"[A-Za-z]_[A-Za-z]|[a-z][A-Z]|\d|`|\w/\w|\w\.[A-Za-z_]{2,}|[A-Z]{2,}")
_OPEN = re.compile(
    r"""(?ix)\b(?:next\ steps?|to-?do\b(?!\ list)
    |remaining\ (?:work|tasks?|steps?|items?|issues?|tests?|files?|parts?)
    |still\ (?:need|to|have\ to|fail|missing|open)\w*|left\ to\ do|not\ yet|pending|follow-?up|outstanding
    |then\ (?:i|we)(?:['’]ll|\ will)|(?:i|we)(?:['’]ll|\ will)\ need\ to\ (?!know|look|check|have|see)\w+)\b
    |\b(?:осталось|ещё\ (?:нужно|надо)|еще\ (?:нужно|надо)|далее|следующ\w+\ шаг\w*)\b
    |下一步|待办|还需|还没|尚未|剩下|接下来"""
)
