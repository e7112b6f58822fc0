import { expect, test } from "vitest";
import { FOLDERS_CHANGED, withTrust } from "../../src/server/trust";

const SHARED = { uri: "file:///work/shared", name: "shared" };
const OLD = { uri: "file:///work/old", name: "old" };

test("the server is told of an added folder whether the window is trusted", () => {
  const params = { event: { added: [SHARED, OLD], removed: [] } };
  for (const trusted of [true, false]) {
    expect(withTrust(FOLDERS_CHANGED, params, trusted)).toEqual({
      event: {
        added: [
          { ...SHARED, trusted },
          { ...OLD, trusted },
        ],
        removed: [],
      },
    });
  }
  expect(params.event.added[0]).toEqual(SHARED);
});

test("nothing else that the server is told is changed", () => {
  const removed = { event: { added: [], removed: [OLD] } };
  expect(withTrust(FOLDERS_CHANGED, removed, true)).toEqual(removed);
  const params = { textDocument: OLD };
  expect(withTrust("textDocument/didOpen", params, true)).toBe(params);
  expect(withTrust("initialized", undefined, true)).toBeUndefined();
});
