import { jest } from "@jest/globals";
import dns from "node:dns/promises";
import net from "node:net";
import { isolate, NetworkBlocked } from "stricttest";

let end;
afterEach(() => end());
beforeEach(() => isolate({ after: (fn) => (end = fn) }, { sockets: "deny" }));

test("a refusal that is expected", async () => {
  await expect(dns.lookup("db.invalid")).rejects.toThrow(NetworkBlocked);
});

test("with a clock that stands still", async () => {
  jest.useFakeTimers();
  const error = await new Promise((resolve) => net.connect(80, "203.0.113.1").on("error", resolve));
  expect(error).toBeInstanceOf(NetworkBlocked);
});
