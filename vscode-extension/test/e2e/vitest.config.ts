import { resolve } from "node:path";
import { defineConfig } from "vitest/config";

// One server, one browser, one test after the other: two cores are busy with that already.
export default defineConfig({
  root: resolve(import.meta.dirname, "../.."),
  test: {
    include: process.env.NEXUS_E2E_SCREENSHOTS
      ? ["test/e2e/screenshots.ts", "test/e2e/looks.ts"]
      : ["test/e2e/*.test.ts"],
    globalSetup: ["test/e2e/setup.ts"],
    testTimeout: 180_000,
    hookTimeout: 240_000,
    fileParallelism: false,
    isolate: false,
    maxWorkers: 1,
    reporters: ["verbose"],
  },
});
