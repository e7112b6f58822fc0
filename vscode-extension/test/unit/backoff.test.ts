import { expect, test } from "vitest";
import { backoff, MOST, WITHIN_MS } from "../../src/server/backoff";
import { atLeast, serverVersion, versionIn } from "../../src/server/versions";

test("the waits double up to half a minute, then it is given up", () => {
  let now = 0;
  const policy = backoff(() => now);
  const waits = Array.from({ length: MOST + 1 }, () => {
    policy.started();
    now += 100;
    return policy.ended();
  });
  expect(waits).toEqual([1000, 2000, 4000, 8000, 16000, 30000, 30000, undefined]);
  policy.reset();
  expect(policy.ended()).toBe(1000);
});

test("a run that lasted begins anew, and old ends are forgotten", () => {
  let now = 0;
  const policy = backoff(() => now);
  expect([policy.ended(), policy.ended()]).toEqual([1000, 2000]);
  policy.started();
  now += 60_000;
  expect(policy.ended()).toBe(1000);
  policy.reset();
  for (let i = 0; i < 3 * MOST; i++) {
    policy.started();
    now += WITHIN_MS / MOST + 1;
    expect(policy.ended()).toBeDefined();
  }
});

test.each([
  ["nexus 0.1.0\n", [0, 1, 0]],
  ["nexus 0.12", [0, 12, 0]],
  ["nexus 1.2.3rc1", [1, 2, 3]],
  ["Nexus Repository Manager 3.70.1", undefined],
  ["usage: nexus [options]", undefined],
  ["", undefined],
])("%j is version %j", (text, version) => {
  expect(serverVersion(text)).toEqual(version);
});

test.each([
  [[0, 1, 0], [0, 1, 0], true],
  [[0, 0, 9], [0, 1, 0], false],
  [[1, 0, 0], [0, 9, 9], true],
  [[3, 9, 18], [3, 11, 0], false],
] as const)("%j is at least %j: %s", (version, needed, holds) => {
  expect(atLeast(version, needed)).toBe(holds);
});

test("a version is found in the words around it", () => {
  expect(versionIn("Python 3.11.4 (main)")).toEqual([3, 11, 4]);
  expect(versionIn("no number")).toBeUndefined();
});
