"""What people and assistants say in the made coding sessions.

Every list is split in two: sessions with a tuning seed use the even phrases, held-out sessions the odd ones,
so that whoever tunes a summarizer has never read what it is judged by. `{path}`, `{symbol}`, `{word}`,
`{number}`, `{host}` and `{ticket}` are filled from the project of the session.
"""

from collections.abc import Sequence

REQUESTS = (
    "The {word} page shows stale totals after a refund. Can you find out why and fix it in {path}?",
    "Customers report that {symbol} returns twice the amount if two requests come in at once, see {ticket}.",
    "Add an endpoint that exports the {word} list as CSV, next to what {path} already does.",
    "We need {symbol} to support pagination; {ticket} has the details from the mobile team.",
    "Refactor {path} so that the {word} logic is a class of its own, without changing what callers see.",
    "{symbol} has grown too long. Split it into parts that can be tested one by one.",
    "The nightly job for the {word} import died again, could you look into it? It starts in {path}.",
    "Since the last deploy the {word} worker uses {number} MB more memory. Let's find the leak.",
    "Please write tests for {symbol}, the edge cases around an empty {word} are not covered at all.",
    "I'd like the {word} settings to be read from the environment instead of being hard-coded in {path}.",
    "Let's move on to {ticket}: the {word} cache has to be invalidated when a user changes the plan.",
    "Next is {ticket}, the {word} search is slow with more than {number} rows.",
)

ORDERS = (
    "the {word} header is too tall, {number} px is plenty",
    "put it behind the {word} flag for now",
    "same treatment for {symbol}, obviously",
    "errors go to {host}, not to stderr",
    "I'd go without the {word} helper here",
    "dates in UTC, everywhere",
    "no mocks in the {word} tests please",
    "{symbol} is public, other repositories call it, so its name and arguments stay",
    "at the end a line in the changelog, in the style of the others",
    "the {word} column is nullable for old customers, so a default won't do",
    "two approvals for anything below {path}",
    "one commit per step, with the ticket in front",
    "the numbers in the report are rounded at the very end, nowhere before",
    "{path} comes from a generator, edits in it get lost",
    "Never change the public signature of {symbol}.",
    "Do not touch {path}, another team owns it.",
    "Always run the whole suite before you say that it works.",
    "You must not add a new dependency for this.",
    "Keep the {word} timeout at {number} seconds.",
    "Make sure that the migration can be rolled back.",
    "Leave the {word} fixtures as they are.",
    "Every new function needs a docstring of one line.",
    "Don't commit anything, I will do that myself.",
    "Write the messages in the log in English only.",
    "Use {symbol} instead of a raw query.",
    "All amounts have to be integers in cents.",
    "From now on put new tests below tests/{word}.",
    "Ask me before you delete a file.",
    "Only the {word} role may call this.",
    "The response must stay below {number} kB.",
)

STEERING = (
    "still {number} ms on my machine",
    "{symbol} as well",
    "hmm the {word} badge is gone now",
    "that's the wrong {word}, I meant the one in {path}",
    "back to the version with {symbol}",
    "a bit more room, {number} or so",
    "no, the other one: {path}",
    "wait, that breaks {symbol} for the admin view",
    "stop, don't rename {symbol}",
    "that's not what I meant, the {word} total must include the discount",
    "actually use {number} as the default",
    "you forgot {path}",
    "hm, rather log it and go on than raise there",
    "skip the {word} part for today",
)

PLAIN = (
    "go on",
    "ok",
    "yes please",
    "continue",
    "looks good, next",
    "thanks!",
    "sure",
    "perfect",
)

FACTS = (
    "{host} has {number} GB, the laptop less.",
    "In the EU the {word} has another owner.",
    "Friday there was an outage of {number} minutes.",
    "{ticket} is from the {word} customer in Lyon.",
    "The staging database is {host}, port {number}.",
    "Our {word} service runs on Python 3.11 in production, on two nodes.",
    "Maria from the {word} team wrote that part two years ago.",
    "The {word} table has about {number} million rows at the biggest customer.",
    "There are {number} tenants with their own {word} schema.",
    "The demo for the customer is on Thursday at 14:30.",
    "By the way, {host} is behind a proxy that cuts requests after {number} seconds.",
    "The old {word} API is used by the Android app up to version 4.{number}.",
)

PREFERENCES = (
    "short names in loops are fine",
    "one big file beats ten tiny ones, to me",
    "tables over prose",
    "early versions can be ugly, as far as I'm concerned",
    "I like small functions better than comments.",
    "I find early returns easier to read than nested ifs.",
    "For me a plain dict is fine there, no class.",
    "I'm more comfortable with pytest fixtures than with setUp methods.",
    "My taste: names in full, no abbreviations like {word}_cfg.",
    "I usually read diffs on my phone, so short ones help me.",
    "Tabs in the SQL files look better to me.",
    "I enjoy seeing the plan first, then the code.",
)

FINDINGS = (
    "{symbol} never sees the {word} of the second tenant.",
    "Two workers write {path} at the same time, {number} ms apart.",
    "Without the index the {word} query scans {number} thousand rows.",
    "{path} still imports the old {word} client.",
    "The {word} events arrive before {symbol} has subscribed.",
    "Only {symbol} and its test know about the {word} limit of {number}.",
    "The root cause is that {symbol} reads the {word} total before the transaction commits.",
    "{symbol} is called twice: once by the view and once by the {word} signal in {path}.",
    "It turns out that {path} caches the {word} for {number} seconds.",
    "The {word} lock is held while {symbol} waits for the network, hence the timeouts.",
    "The test fails because {symbol} rounds half up, and the fixture expects banker's rounding.",
    "{path} silently swallows the exception of {symbol}, which is why nothing was logged.",
    "The leak comes from {symbol}, which keeps every {word} in a module-level list.",
    "So the {word} rows with a null owner are skipped by {symbol}; there are {number} of them.",
)

DECISIONS = (
    "I decided to keep {symbol} as a thin wrapper because {number} callers use it.",
    "We go with a database constraint instead of a check in {path}.",
    "I chose a generator over a list for {symbol}, since the {word} export can be large.",
    "The {word} retry stays in {path}: moving it would change the order of events.",
    "I'm using an index on the {word} column rather than a second cache.",
    "Rather than patch {symbol}, the {word} validation now happens at the boundary in {path}.",
    "A feature flag named {word}_v2 guards the new path.",
    "{symbol} gets its own module; {path} only imports it.",
)

SPECIFICATIONS = (
    "A {word} has an owner and a state, and {symbol} moves it from one state to the next.",
    "Today {path} does half of that, the rest happens in a script that somebody runs by hand.",
    "The customer sees a list with the newest {word} first, {number} on a page.",
    "When the {word} service is down, the page shows what it had and says how old it is.",
    "There is a sketch on the wiki, but the {word} part of it is older than {ticket}.",
    "Whoever has the {word} right sees the amounts, the others see dots.",
    "For the import {symbol} reads about {number} lines a second, that was fine so far.",
    "The mobile app calls {symbol} on every start, so think of {number} requests a second.",
    "Old records have no {word}; a script from {ticket} fills them over night.",
    "The totals come from {path}, and finance compares them with the {word} book each month.",
)

ANNOUNCEMENTS = (
    "Let me look at the code first.",
    "Now I'll check how it is called.",
    "Let me run the tests.",
    "I'll read the related module.",
    "Looking at the callers now.",
    "Checking the tests around it.",
    "",
    "",
    "",
    "",
)

REPORTS = (
    "Done. {symbol} now handles the case, and the tests pass.",
    "The change is in place; all {number} tests pass.",
    "That works now: {path} has the fix and there is a test for it.",
    "Finished. I changed {path} and added a test for {symbol}.",
)

TASKS = (
    "Reproduce the {word} problem",
    "Read how {symbol} is called",
    "Change {path}",
    "Adapt the callers of {symbol}",
    "Add a test for the empty {word}",
    "Cover {symbol} with tests",
    "Update the {word} documentation",
    "Run the suite and the type checker",
    "Remove the old {word} helper",
    "Measure {symbol} with {number} rows",
)


def half(phrases: Sequence[str], *, held_out: bool) -> tuple[str, ...]:
    """The phrases of tuning sessions, or those of held-out ones."""
    return tuple(phrases[1 if held_out else 0 :: 2])
