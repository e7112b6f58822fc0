import { resolve } from "node:path";
import { defineConfig } from "vitest/config";

export default defineConfig({
  resolve: { alias: { vscode: resolve(import.meta.dirname, "test/unit/vscode.ts") } },
  test: { include: ["test/unit/**/*.test.ts"], testTimeout: 10_000, restoreMocks: true },
});
