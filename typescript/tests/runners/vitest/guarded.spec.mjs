import dns from "node:dns/promises";
import { expect, onTestFinished, test } from "vitest";
import { isolate, NetworkBlocked } from "stricttest";

test("a refusal that is expected", async () => {
  isolate({ after: onTestFinished }, { sockets: "deny" });
  await expect(dns.lookup("db.invalid")).rejects.toThrow(NetworkBlocked);
});
