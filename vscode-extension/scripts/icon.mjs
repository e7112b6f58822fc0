/** Draws media/icon.png from media/icon.svg with the machine's Chromium: `node scripts/icon.mjs`. The PNG is committed. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { chromium } from "playwright-core";

const SIDE = 256; // pixels
const media = resolve(import.meta.dirname, "../media");

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
const page = await browser.newPage({ viewport: { width: SIDE, height: SIDE } });
await page.setContent(`<style>*{margin:0}svg{display:block}</style>${readFileSync(`${media}/icon.svg`, "utf8")}`);
await page.screenshot({ path: `${media}/icon.png`, omitBackground: true });
await browser.close();
