import { isolate } from "stricttest";

let end;
afterEach(() => end());
beforeEach(() => isolate({ after: (fn) => (end = fn) }, { sockets: "deny" }));

it("the code under test hides what it was refused", async () => {
  await fetch("http://203.0.113.1/").catch(() => {});
});
