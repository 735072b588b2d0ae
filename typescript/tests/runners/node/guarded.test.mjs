import assert from "node:assert/strict";
import dns from "node:dns/promises";
import { test } from "node:test";
import { isolate, NetworkBlocked } from "stricttest";

test("a refusal that is expected", async (t) => {
  isolate(t, { sockets: "deny" });
  await assert.rejects(dns.lookup("db.invalid"), NetworkBlocked);
});
