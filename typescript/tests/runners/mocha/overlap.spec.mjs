import { isolate } from "stricttest";

// Mocha runs one test after another, so only a forgotten end can overlap: the next test's isolation says so.
it("forgets to end", async () => {
  await null;
  isolate({ after: () => {} });
});

it("comes next", async () => {
  await new Promise(setImmediate);
  isolate({ after: () => {} });
});
