import { expect, test } from "vitest";
import type { Launch } from "../../src/server/launch";
import { checkProtocol, protocolOf } from "../../src/server/protocolCheck";
import { SetupError } from "../../src/server/remedies";

const LAUNCH: Launch = {
  command: "/opt/nexus",
  prefix: [],
  isShared: true,
  from: "setting",
  version: [0, 3, 0],
};

function check(protocol: number, from: Launch["from"] = "setting") {
  try {
    checkProtocol(protocol, { ...LAUNCH, from }, "0.1.0");
  } catch (error) {
    return error instanceof SetupError ? [error.kind, error.message, ...error.remedies] : error;
  }
  return undefined;
}

test("a server of this protocol is taken", () => expect(check(1)).toBeUndefined());

test("a newer server asks for a newer extension, and an older one for a newer server", () => {
  expect(check(2)).toEqual([
    "other-protocol",
    "Update the Nexus extension: extension 0.1.0 speaks protocol 1, and server 0.3.0 (/opt/nexus) speaks protocol 2.",
    "serverSetting",
    "tryAgain",
  ]);
  expect(check(0, "path")).toEqual([
    "other-protocol",
    "Update the Nexus server: extension 0.1.0 speaks protocol 1, and server 0.3.0 (/opt/nexus) speaks protocol 0.",
    "tryAgain",
  ]);
});

test.each<[unknown, number]>([
  [undefined, 1],
  [{}, 1],
  [{ nexus: true }, 1],
  [{ nexus: { protocol: "2" } }, 1],
  [{ nexus: { protocol: 2 } }, 2],
])("a server with the capabilities %j speaks protocol %i", (experimental, protocol) => {
  expect(protocolOf({ experimental })).toBe(protocol);
});
