#!/usr/bin/env bash
# The check of action.yml. Its inputs are variables, so that no text of a pull request becomes part of a command.
set -uo pipefail
code=0
fail() { code=1; }

if [ "$NEXUS_FOR" = nexus ]; then
  nexus check "$NEXUS_PATH" --format github || fail
  exit $code
fi
nexus check "$NEXUS_PATH" --for "$NEXUS_FOR" --format github ${NEXUS_BUDGET:+--budget "$NEXUS_BUDGET"} || fail
if [ -n "$NEXUS_BASE" ]; then
  # a checkout has its last commit only
  git -C "$NEXUS_PATH" cat-file -e "$NEXUS_BASE^{commit}" 2>/dev/null ||
    git -C "$NEXUS_PATH" fetch --quiet --depth=1 origin "$NEXUS_BASE" || fail
  nexus diff "$NEXUS_BASE" "$NEXUS_PATH" --for "$NEXUS_FOR" --format markdown \
    ${NEXUS_GROWTH:+--budget "$NEXUS_GROWTH"} >"$NEXUS_COMMENT" || fail
  cat "$NEXUS_COMMENT" >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
fi
exit $code
