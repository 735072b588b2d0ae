import assert from "node:assert/strict";
import dns from "node:dns/promises";
import { isolate, NetworkBlocked } from "stricttest";

let end;
afterEach(() => end());
beforeEach(() => isolate({ after: (fn) => (end = fn) }, { sockets: "deny" }));

it("a refusal that is expected", async () => {
  await assert.rejects(dns.lookup("db.invalid"), NetworkBlocked);
});
