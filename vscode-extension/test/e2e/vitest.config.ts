import { resolve } from "node:path";
import { defineConfig } from "vitest/config";

// Two processes, each with a server and a browser of its own: while a test of one waits, the other's computes.
export default defineConfig({
  root: resolve(import.meta.dirname, "../.."),
  test: {
    include: process.env.NEXUS_E2E_SCREENSHOTS
      ? ["test/e2e/screenshots.ts", "test/e2e/looks.ts"]
      : ["test/e2e/*.test.ts"],
    globalSetup: ["test/e2e/setup.ts"],
    testTimeout: 180_000,
    hookTimeout: 240_000,
    isolate: false,
    maxWorkers: process.env.NEXUS_E2E_SCREENSHOTS ? 1 : 2,
    reporters: ["verbose"],
  },
});
