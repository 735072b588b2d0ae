import { onTestFinished, test } from "vitest";
import { isolate } from "stricttest";

test("the code under test hides what it was refused", async () => {
  isolate({ after: onTestFinished }, { sockets: "deny" });
  await fetch("http://203.0.113.1/").catch(() => {});
});
