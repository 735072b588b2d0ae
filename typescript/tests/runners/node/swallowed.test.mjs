import { test } from "node:test";
import { isolate } from "stricttest";

test("the code under test hides what it was refused", async (t) => {
  isolate(t, { sockets: "deny" });
  await fetch("http://203.0.113.1/").catch(() => {});
});
