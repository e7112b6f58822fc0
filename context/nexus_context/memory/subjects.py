"""Determines what a remembered sentence is about, so that a later sentence about the same subject replaces
it.

Two sentences are about the same subject in cases 1 to 3 only. All other sentences stay side by side:

1. `port: 8080` and `port = 9090`: the same name before `:` or `=`.
2. `The port is 9090.`, `The port must be 9090.`, `Set the port to 9090.`: the same name, and the value is one
   word with a digit, or stands in quotes or backticks. (`The API must be fast.` has no such value: it adds to
   what else the API must be.)
3. `Never push.`, `Always push.`, `Do not push.`, `You may push.`: the same after these words.
4. Words such as `Remember:`, `From now on` or `Actually,` before that do not matter, nor do articles and
   case.
"""

import re

MOST_WORDS = 6
"""Words of the name of a subject."""

_LEAD = re.compile(
    r"""(?ix)^(?:(?:please|remember|note|important|actually|no|correction|instead|from\ now\ on|now
    |decided|decision|we\ decided|i\ decided|agreed|update|wait|sorry)\b(?:\ that\b)?\s*[,:.–-]*\s*)+"""
)
_ASSIGNED = re.compile(r"^(?P<name>[^:=]+?)\s*(?::(?!//)|=)\s*(?P<value>\S.*)$")
_VALUE = r"""(?P<value>`[^`]+`|"[^"]+"|'[^']+'|“[^”]+”|\S*\d\S*)"""
_IS = re.compile(
    rf"(?i)^(?P<name>.+?) (?:is|are|must be|should be|has to be|will be|is now|are now) (?:now )?{_VALUE}$"
)
_SET = re.compile(rf"(?i)^(?:set|change|raise|lower|move|switch|bump) (?P<name>.+?) to {_VALUE}$")
_MAY = re.compile(
    r"(?i)^(?:never|always|do not|don['’]t|you may|you can|you must|you must not|must|must not) (?P<act>.+)$"
)
_ARTICLE = re.compile(r"(?i)\b(?:the|a|an|our|my|your|this)\b ?")
_PRONOUNS = re.compile(
    r"(?i)^(?:it|that|there|i|we|you|he|she|they|what|which|who|todo|fix|error|fixed|done)$"
)


def subject_of(sentence: str) -> str | None:
    """Return a text that is equal for sentences about the same subject. Return None if the sentence has no
    subject by the rules above.
    """
    text = _LEAD.sub("", sentence.strip()).rstrip(".!。 ")
    match = _MAY.match(text)
    if match is not None:
        return f"may {_plain(match['act'].removesuffix(' now').removesuffix(' again'))}"
    match = _ASSIGNED.match(text) or _IS.match(text) or _SET.match(text)
    if match is None:
        return None
    name = _plain(match["name"])
    if not name or len(name.split()) > MOST_WORDS or _PRONOUNS.match(name):
        return None
    return f"is {name}"


def _plain(text: str) -> str:
    return " ".join(_ARTICLE.sub("", text.casefold()).split())
