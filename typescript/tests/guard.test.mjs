import assert from "node:assert/strict";
import dgram from "node:dgram";
import dns, { lookup as importedLookup } from "node:dns";
import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import https from "node:https";
import net from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import tls from "node:tls";
import { inspect, promisify } from "node:util";
import { chdir, isolate, IsolationOverlapError, NetworkBlocked, throwawayHome } from "stricttest";
import { registry, run } from "./support.mjs";

/** For documentation only, by RFC 5737: nothing answers there. */
const HOST = "203.0.113.1";
const NAME = "db.stricttest.invalid";

/** Runs a function in a guarded isolation and returns what its end threw, if it did. */
async function guarded(stance, body) {
  const own = registry();
  isolate(own, { sockets: "deny", ...stance });
  try {
    await body(own);
  } finally {
    try {
      own.end();
    } catch (error) {
      guarded.told = error;
    }
  }
  const { told } = guarded;
  guarded.told = undefined;
  return told;
}

/** The error by which an emitter ends, the cause of it where it has one. */
async function errorOf(emitter) {
  const [error] = await once(emitter, "error");
  return error.cause ?? error;
}

async function errorIn(promise) {
  return promise.then(
    () => assert.fail("nothing was refused"),
    (error) => error.cause ?? error,
  );
}

const calling = (start) => new Promise((resolve) => start((error) => resolve(error)));

async function listening(t, server, ...where) {
  server.listen(...where);
  await once(server, "listening");
  t.after(() => new Promise((resolve) => server.close(resolve)));
  return server.address();
}

function echo(t) {
  return listening(
    t,
    net.createServer((socket) => socket.on("error", () => {}).end("hi")),
    0,
    "127.0.0.1",
  );
}

async function datagrams(t) {
  const socket = dgram.createSocket("udp4");
  t.after(() => socket.close());
  await new Promise((resolve) => socket.bind(0, "127.0.0.1", resolve));
  return socket;
}

async function read(socket) {
  let text = "";
  for await (const chunk of socket) text += chunk;
  return text;
}

/** The case n03 of the reference's defects. */
test("a TCP connect and a fetch to the loopback are refused", async (t) => {
  let count = 0;
  const server = net.createServer((socket) => socket.end("hi")).on("connection", () => (count += 1));
  const { port } = await listening(t, server, 0, "127.0.0.1");
  const told = await guarded({}, async () => {
    const socket = net.connect(port, "127.0.0.1");
    assert.ok(socket.connecting);
    assert.equal((await errorOf(socket)).code, "ECONNREFUSED");
    assert.ok(socket.destroyed);
    const error = await errorIn(fetch(`http://127.0.0.1:${port}/`));
    assert.equal(error.code, "ECONNREFUSED");
  });
  assert.match(told.message, new RegExp(`connect to 127\\.0\\.0\\.1:${port}, at .*guard\\.test\\.mjs:\\d+`));
  assert.equal(told.errors.length, 2);
  assert.equal(count, 0, "nothing has arrived");
  assert.equal(await read(net.connect(port, "127.0.0.1")), "hi", "afterwards all is open again");
});

const CONNECTS = {
  "net.connect": (host, port) => errorOf(net.connect(port, host)),
  "net.connect of a numeric text": (host, port) => errorOf(net.connect(String(port), host)),
  "net.createConnection": (host, port) => errorOf(net.createConnection({ host, port })),
  "Socket.connect": (host, port) => errorOf(new net.Socket().connect({ host, port })),
  "Socket.connect, again": async (host, port) => {
    const socket = new net.Socket();
    await errorOf(socket.connect(port, host));
    await once(socket, "close");
    return errorOf(socket.connect(port, host));
  },
  "tls.connect": (host, port) => errorOf(tls.connect(port, host)),
  "http.get": (host, port) => errorOf(http.get({ host, port })),
  "https.get": (host, port) => errorOf(https.get({ host, port })),
  "http2.connect": (host, port) => errorOf(http2.connect(`http://${host}:${port}`)),
  "http2.connect over tls": (host, port) => errorOf(http2.connect(`https://${host}:${port}`)),
  fetch: (host, port) => errorIn(fetch(`http://${host}:${port}/`)),
  "fetch over tls": (host, port) => errorIn(fetch(`https://${host}:${port}/`)),
};

for (const [name, start] of Object.entries(CONNECTS)) {
  for (const host of [HOST, NAME]) {
    test(`${name} to ${host}`, async () => {
      const told = await guarded({ loopback: "allow" }, async () => {
        const error = await start(host, 8443);
        const { code, subject, port, message, site } = error;
        assert.equal(error.name, "NetworkBlocked");
        assert.deepEqual({ code, subject, port }, { code: "ECONNREFUSED", subject: host, port: 8443 });
        assert.ok(message.startsWith(`stricttest refused to connect to ${host}:8443; `), message);
        assert.ok(message.includes(`sockets: "allowlist", socketAllowlist: ["${host}:8443"]`), message);
        assert.match(site, /tests\/guard\.test\.mjs:\d+/);
      });
      assert.match(told.message, new RegExp(`^ {2}connect to ${host}:8443, at .*guard\\.test\\.mjs:\\d+`, "m"));
    });
  }
}

// Its flag is that of Node 20; later ones have it without.
test("WebSocket", () => {
  const program = `
    import { isolate, NetworkBlocked } from "stricttest";
    let end;
    isolate({ after: (fn) => (end = fn) }, { sockets: "deny" });
    new WebSocket("ws://${HOST}:8080/").addEventListener("error", () => {
      try { end(); } catch (error) { console.log(error.message); }
    });`;
  const { output } = run(process.execPath, ["--experimental-websocket", "--input-type=module", "-e", program]);
  assert.match(output, new RegExp(`connect to ${HOST}:8080, at `));
});

const LOOKUPS = {
  "dns.lookup": (name) => calling((done) => dns.lookup(name, done)),
  "dns.lookup with options": (name) => calling((done) => dns.lookup(name, { all: true }, done)),
  "an imported lookup": (name) => calling((done) => importedLookup(name, done)),
  "dns.resolve": (name) => calling((done) => dns.resolve(name, "MX", done)),
  "dns.resolve4": (name) => calling((done) => dns.resolve4(name, done)),
  "dns.resolveTxt": (name) => calling((done) => dns.resolveTxt(name, done)),
  "Resolver.resolve6": (name) => calling((done) => new dns.Resolver().resolve6(name, done)),
  "dns.promises.lookup": (name) => errorIn(dns.promises.lookup(name)),
  "dns.promises.resolve": (name) => errorIn(dns.promises.resolve(name)),
  "dns.promises.resolveSrv": (name) => errorIn(dns.promises.resolveSrv(name)),
  "promises.Resolver.resolve4": (name) => errorIn(new dns.promises.Resolver().resolve4(name)),
  "util.promisify": (name) => errorIn(promisify(dns.lookup)(name)),
};

for (const [name, start] of Object.entries(LOOKUPS)) {
  test(`${name} of a name`, async () => {
    const told = await guarded({}, async () => {
      const { code, subject, port, message } = await start(NAME);
      assert.deepEqual({ code, subject, port }, { code: "ENOTFOUND", subject: NAME, port: null });
      assert.ok(message.includes(`socketAllowlist: ["${NAME}:*"]`), message);
    });
    assert.match(told.message, new RegExp(`^ {2}look up ${NAME}, at .*guard\\.test\\.mjs:\\d+`, "m"));
  });
}

test("reverse look-ups are refused by their address", async () => {
  const told = await guarded({}, async () => {
    await calling((done) => dns.reverse(HOST, done));
    await errorIn(dns.promises.lookupService(HOST, 80));
  });
  assert.match(told.message, new RegExp(`look up ${HOST}, at .*\n  look up ${HOST}:80, at `));
});

test("every question that Node can ask is known", async () => {
  const told = await guarded({}, async () => {
    for (const owner of [dns.promises, new dns.promises.Resolver()]) {
      for (const name of [
        "lookup",
        ...Object.getOwnPropertyNames(dns.promises).filter((one) => /^resolve/.test(one)),
      ]) {
        if (owner[name]) assert.equal((await errorIn(owner[name](NAME))).name, "NetworkBlocked", name);
      }
    }
  });
  assert.ok(told);
});

test("datagrams are refused, with an error for whoever listens", async (t) => {
  const socket = await datagrams(t);
  const told = await guarded({ loopback: "allow" }, async () => {
    const ways = [
      (done) => socket.send("x", 53, HOST, done),
      (done) => socket.send(Buffer.from("xyz"), 0, 1, 53, HOST, done),
      (done) => socket.send(["x", "y"], 53, NAME, done),
      (done) => socket.connect(53, HOST, done),
    ];
    for (const start of ways) {
      const { code, port } = await calling(start);
      assert.deepEqual([code, port], ["ECONNREFUSED", 53]);
    }
    socket.send("x", 54, HOST);
    assert.equal((await errorOf(socket)).port, 54);
  });
  assert.match(told.message, new RegExp(`send to ${HOST}:53, at .*\n  send to ${NAME}:53`, "s"));
  assert.match(told.message, new RegExp(`connect to ${HOST}:53`));
});

test("datagrams to this machine go by the loopback", async (t) => {
  const [receiver, sender, peer] = [await datagrams(t), await datagrams(t), await datagrams(t)];
  const { port } = receiver.address();
  const denied = await guarded({}, async () => {
    assert.equal((await calling((done) => sender.send("x", port, done))).name, "NetworkBlocked");
  });
  assert.match(denied.message, new RegExp(`send to localhost:${port}`));
  const told = await guarded({ loopback: "allow" }, async () => {
    const [first] = [once(receiver, "message"), sender.send("one", port)];
    assert.equal(String((await first)[0]), "one");
    await new Promise((resolve) => peer.connect(port, "127.0.0.1", resolve));
    const [second] = [once(receiver, "message"), peer.send("two")];
    assert.equal(String((await second)[0]), "two");
  });
  assert.equal(told, undefined);
});

test("what is allowed works as ever", async (t) => {
  const { port } = await echo(t);
  const web = await listening(
    t,
    http.createServer((_, answer) => answer.setHeader("connection", "close").end("web")),
    0,
    "127.0.0.1",
  );
  const h2 = http2.createServer((_, answer) => answer.end("two"));
  await listening(t, h2, 0, "127.0.0.1");
  const works = async () => {
    assert.equal(await read(net.connect(port, "127.0.0.1")), "hi");
    assert.equal(await read(new net.Socket().connect({ port, host: "localhost", family: 4 })), "hi");
    assert.equal(await (await fetch(`http://localhost:${web.port}/`)).text(), "web");
    const session = http2.connect(`http://127.0.0.1:${h2.address().port}`);
    assert.equal(await read(session.request()), "two");
    await new Promise((resolve) => session.close(resolve));
    assert.equal((await dns.promises.lookup("localhost", 4)).address, "127.0.0.1");
    assert.deepEqual(await promisify(dns.lookup)("localhost", 4), { address: "127.0.0.1", family: 4 });
    assert.deepEqual(await dns.promises.lookup(HOST), { address: HOST, family: 4 }, "an address is its own answer");
  };
  assert.equal(await guarded({ loopback: "allow" }, works), undefined);
  assert.equal(await guarded({ sockets: "allowlist", socketAllowlist: ["localhost:*"] }, works), undefined);
});

test("an entry allows its port and no other", async (t) => {
  const [one, other] = [await echo(t), await echo(t)];
  const socketAllowlist = [`127.0.0.1:${one.port}`];
  const told = await guarded({ sockets: "allowlist", socketAllowlist }, async () => {
    assert.equal(await read(net.connect(one.port, "127.0.0.1")), "hi");
    const { message } = await errorOf(net.connect(other.port, "127.0.0.1"));
    assert.ok(message.includes(`loopback: "allow" or sockets: "allowlist"`), message);
  });
  assert.equal(told.errors.length, 1);
});

test("a name is allowed at the addresses that it resolves to", async (t) => {
  const { port } = await echo(t);
  const socketAllowlist = [`localhost:${port + 1}`, `${NAME}:${port}`];
  t.mock.method(dns, "lookup", (_name, options, done) =>
    done(null, options.all ? [{ address: "127.0.0.1", family: 4 }] : "127.0.0.1", 4),
  );
  const told = await guarded({ sockets: "allowlist", socketAllowlist }, async () => {
    assert.equal(await read(net.connect(port, NAME)), "hi");
    assert.equal(await read(net.connect(port, "127.0.0.1")), "hi");
  });
  assert.equal(told, undefined);
});

test("where a look-up of the test's own leads is judged, and not the name", async (t) => {
  const { port } = await echo(t);
  const to = (address) => (_name, options, done) =>
    setImmediate(done, null, options.all ? [{ address, family: 4 }] : address, 4);
  const told = await guarded({ loopback: "allow" }, async () => {
    assert.equal(await read(net.connect({ port, host: NAME, lookup: to("127.0.0.1") })), "hi");
    const error = await errorOf(net.connect({ port, host: "localhost", lookup: to(HOST) }));
    assert.equal(error.subject, HOST);
    assert.match(error.site, /guard\.test\.mjs/);
    const mock = t.mock.method(dns, "lookup", to("127.0.0.1"));
    assert.equal(await read(net.connect(port, NAME)), "hi");
    mock.mock.restore();
    assert.equal((await errorOf(net.connect(port, NAME))).subject, NAME);
  });
  assert.equal(told.errors.length, 2);
});

test("unix sockets go by their own list", async (t) => {
  const outer = registry();
  t.after(() => outer.end());
  const path = join(throwawayHome(outer), "x.sock");
  await listening(
    t,
    net.createServer((socket) => socket.end("hi")),
    path,
  );
  const told = await guarded({ loopback: "allow" }, async () => {
    const { code, subject, message } = await errorOf(net.connect(path));
    assert.deepEqual([code, subject], ["ECONNREFUSED", path]);
    assert.ok(message.includes(`unixSocketAllowlist: ["${path}"]`), message);
    assert.equal((await errorOf(http.get({ socketPath: path }))).name, "NetworkBlocked");
  });
  assert.match(told.message, /connect to \/.*x\.sock/);
  const allowed = await guarded({ unixSocketAllowlist: [path] }, async (own) => {
    assert.equal(await read(net.connect({ path })), "hi");
    chdir(own, join(path, ".."));
    assert.equal(await read(net.connect("x.sock")), "hi", "by a relative path");
  });
  assert.equal(allowed, undefined);
});

test("what Node itself refuses stays Node's", async () => {
  const told = await guarded({}, async () => {
    assert.throws(() => net.connect(70000, HOST), { code: "ERR_SOCKET_BAD_PORT" });
    assert.throws(() => new net.Socket().connect({}), { code: "ERR_MISSING_ARGS" });
    assert.throws(() => dns.lookup(NAME), { code: "ERR_INVALID_ARG_TYPE" });
    assert.throws(() => dns.resolve4(7, () => {}), { code: "ERR_INVALID_ARG_TYPE" });
    const socket = dgram.createSocket("udp4");
    assert.throws(() => socket.send("x", 70000, HOST), { code: "ERR_SOCKET_BAD_PORT" });
    socket.close();
  });
  assert.equal(told, undefined);
});

test("a refusal that is swallowed is told once for each target and place", async () => {
  const told = await guarded({}, async () => {
    for (let at = 0; at < 3; at += 1) await fetch(`http://${HOST}/`).catch((error) => inspect(error));
    await errorIn(fetch(`http://${HOST}/`));
  });
  assert.ok(told instanceof AggregateError);
  assert.equal(told.errors.length, 2, told.message);
  assert.equal(told.message.match(/connect to 203\.0\.113\.1:80, at /g).length, 2);
});

test("a refusal that the test asks for by its class does not fail it", async () => {
  const told = await guarded({}, async () => {
    await assert.rejects(dns.promises.lookup(NAME), NetworkBlocked);
    await assert.rejects(fetch(`http://${HOST}/`), ({ cause }) => cause instanceof NetworkBlocked);
    assert.ok((await errorOf(net.connect(81, HOST))) instanceof Error);
  });
  assert.equal(told.errors.length, 1, "one of them was not asked for");
  assert.equal(told.errors[0].port, 81);
  assert.ok(!(new Error("x") instanceof NetworkBlocked) && !(undefined instanceof NetworkBlocked));
});

const OWNERS = () => ({
  net,
  Socket: net.Socket.prototype,
  dns,
  promises: dns.promises,
  Resolver: dns.Resolver.prototype,
  PromisesResolver: dns.promises.Resolver.prototype,
  Datagram: dgram.Socket.prototype,
});

function descriptors() {
  return Object.entries(OWNERS()).map(([name, owner]) => [name, Object.getOwnPropertyDescriptors(owner)]);
}

/** Equal, each function and getter the very same. */
function assertSame(found, before) {
  for (const [at, [owner, properties]] of before.entries()) {
    assert.deepEqual(Reflect.ownKeys(found[at][1]), Reflect.ownKeys(properties), owner);
    for (const name of Reflect.ownKeys(properties)) {
      for (const field of ["value", "get", "set", "writable", "enumerable", "configurable"]) {
        assert.ok(Object.is(found[at][1][name][field], properties[name][field]), `${owner}.${String(name)}: ${field}`);
      }
    }
  }
}

test("everything comes back exactly, and only then", async () => {
  const before = descriptors();
  const imported = importedLookup;
  const [outer, inner] = [registry(), registry()];
  isolate(outer, { sockets: "deny" });
  assert.notEqual(dns.lookup, imported);
  assert.equal(importedLookup, dns.lookup, "imports follow");
  assert.deepEqual([dns.lookup.name, dns.lookup.length], [imported.name, imported.length]);
  const kept = dns.lookup;
  isolate(inner, { sockets: "deny", loopback: "allow" });
  assert.equal(dns.lookup, kept, "one set of calls for all guards");
  inner.end();
  assert.equal(dns.lookup, kept);
  outer.end();
  assertSame(descriptors(), before);
  assert.equal(importedLookup, imported);
  assert.equal(await calling((done) => kept("localhost", done)), null, "one that was kept refuses nothing");
});

test("a mock that outlives its isolation leaves nothing for good", async (t) => {
  const before = descriptors();
  let mock;
  await guarded({}, async () => (mock = t.mock.method(dns, "lookup", () => {})));
  assertSame(descriptors(), before);
  mock.mock.restore();
  assert.equal(await calling((done) => dns.lookup("localhost", done)), null, "what it put back refuses nothing");
  await guarded({}, async () => {});
  assertSame(descriptors(), before);
});

test("without sockets nothing is replaced", () => {
  const before = descriptors();
  const own = registry();
  isolate(own);
  assertSame(descriptors(), before);
  own.end();
});

test("an inner guard narrows and never widens", async (t) => {
  const { port } = await echo(t);
  const outer = registry();
  isolate(outer, { sockets: "deny", loopback: "allow" });
  const told = await guarded({}, async () => void (await errorOf(net.connect(port, "127.0.0.1"))));
  assert.equal(told.errors.length, 1, "the inner test is told");
  assert.equal(await read(net.connect(port, "127.0.0.1")), "hi");
  const widened = await guarded({ sockets: "allowlist", socketAllowlist: [`${HOST}:80`] }, async () => {
    await errorOf(net.connect(80, HOST));
  });
  assert.equal(widened.errors.length, 1);
  outer.end();
});

test("an outer guard holds in an inner isolation without one, and is told", async () => {
  const [outer, inner] = [registry(), registry()];
  isolate(outer, { sockets: "deny" });
  isolate(inner);
  await errorOf(net.connect(80, HOST));
  inner.end();
  assert.throws(() => outer.end(), AggregateError);
});

test("guards that end out of order are an overlap, and all comes back", async () => {
  const before = descriptors();
  const [outer, inner] = [registry(), registry()];
  isolate(outer, { sockets: "deny" });
  isolate(inner, { sockets: "deny" });
  assert.throws(() => outer.end(), IsolationOverlapError);
  await assert.rejects(dns.promises.lookup(NAME), NetworkBlocked);
  inner.end();
  assertSame(descriptors(), before);
});

test("a connection from before stays as it is", async (t) => {
  const server = net.createServer((socket) => socket.pipe(socket));
  const { port } = await listening(t, server, 0, "127.0.0.1");
  const socket = net.connect(port, "127.0.0.1");
  await once(socket, "connect");
  const [receiver, peer] = [await datagrams(t), await datagrams(t)];
  await new Promise((resolve) => peer.connect(receiver.address().port, "127.0.0.1", resolve));
  const told = await guarded({}, async () => {
    socket.end("still there");
    assert.equal(await read(socket), "still there");
    const [message] = [once(receiver, "message"), peer.send(Buffer.from("too!"), 0, 3)];
    assert.equal(String((await message)[0]), "too");
  });
  assert.equal(told, undefined);
});

test("a stance that makes no sense is an error before anything changes", () => {
  const { HOME } = process.env;
  const before = descriptors();
  const wrong = [
    [{ sockets: "maybe" }, /sockets must be "deny" or "allowlist", not "maybe"/],
    [{ sockets: "deny", loopback: "perhaps" }, /loopback must be "deny" or "allow", not "perhaps"/],
    [{ sockets: "deny", socketAllowlist: ["a.example:1"] }, /names a\.example:1, but sockets is "deny"/],
    [{ sockets: "allowlist" }, /add socketAllowlist/],
    [{ loopback: "allow" }, /loopback has no effect without sockets/],
    [{ sockets: "allowlist", socketAllowlist: ["a.example"] }, /"a\.example" in socketAllowlist has no port/],
    [{ sockets: "allowlist", socketAllowlist: ["/run/x"] }, /move it to unixSocketAllowlist/],
    [{ sockets: "deny", unixSocketAllowlist: ["a.example:1"] }, /move it to socketAllowlist/],
    [
      { sockets: "allowlist", socketAllowlist: ["https://a.example/x"] },
      /cannot use network entry "https:.*write "a\.example:443".*accepted are/,
    ],
  ];
  for (const [stance, message] of wrong) {
    const own = registry();
    assert.throws(() => isolate(own, stance), { name: "TypeError", message });
    assert.equal(own.ends.length, 0);
  }
  assert.equal(process.env.HOME, HOME);
  assertSame(descriptors(), before);
});
