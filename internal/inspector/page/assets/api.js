// The source of all data: the HTTP API, or in an exported file the documents embedded in it.

const embedded = readEmbedded();

function readEmbedded() {
  const el = document.getElementById("runteam-export");
  return el ? JSON.parse(el.textContent) : null;
}

// exported says which run this file holds, or is null on a server.
export const exported = embedded && { run: embedded.run, name: embedded.name, time: embedded.time, accepts: embedded.accepts };

export class APIError extends Error {
  constructor(status, error) {
    super(error.message ?? "the server answered with status " + status);
    this.status = status;
    this.code = error.code ?? "";
    this.hint = error.hint ?? "";
    this.problems = error.problems ?? [];
  }
}

const base = "/api/v1";

export function path(...parts) { return "/" + parts.map((p) => encodeURIComponent(p)).join("/"); }

// ofRun is the path of a run, or of a part of it, of what has its ID.
export function ofRun({ id }, ...parts) { return path("runs", id, ...parts); }

function fromExport(p) {
  const doc = embedded.documents[p];
  if (doc === undefined) throw new APIError(404, { code: "not_found", message: "this file does not have that", hint: "runteam serve shows it from the journal" });
  return doc;
}

// signedOut is the error when a proxy in front of the server has ended the session.
function signedOut() { return new APIError(401, { code: "unauthorized", message: "you are signed out", hint: "reload this page to sign in again" }); }

async function failed(res) {
  let body = {};
  try { body = await res.json(); } catch { /* no JSON */ }
  const error = body.error ?? {};
  if (res.status === 401 && !error.message) return signedOut();
  return new APIError(res.status, error);
}

async function call(p, init) {
  let res;
  try { res = await fetch(base + p, { credentials: "same-origin", cache: "no-store", redirect: "manual", ...init }); } catch (err) {
    if (err.name === "AbortError") throw err;
    throw new APIError(0, { code: "offline", message: "the server does not answer", hint: "is runteam serve still running?" });
  }
  if (res.type === "opaqueredirect") throw signedOut(); // a proxy leads to where people sign in
  if (!res.ok) throw await failed(res);
  return res;
}

// get reads a document.
export async function get(p, signal) {
  if (embedded) return fromExport(p);
  return (await call(p, { headers: { Accept: "application/json" }, signal })).json();
}

// getTagged reads a document and its ETag.
export async function getTagged(p) {
  if (embedded) return { doc: fromExport(p), tag: "" };
  const res = await call(p, { headers: { Accept: "application/json" } });
  return { doc: await res.json(), tag: res.headers.get("ETag") ?? "" };
}

// send writes: every write carries the header that a foreign page cannot send.
export async function send(method, p, body, headers) {
  if (embedded) throw new APIError(403, { code: "forbidden", message: "an exported run cannot be changed" });
  const res = await call(p, { method, headers: { "Content-Type": "application/json", "X-Runteam": "1", ...headers }, body: JSON.stringify(body ?? {}) });
  const text = await res.text();
  return text ? JSON.parse(text) : {};
}

export function post(p, body) { return send("POST", p, body); }

export function downloadURL(p) { return base + p; }

// A server says something at least every 15 seconds. A connection that is silent for longer is gone, as
// after the computer slept.
const silence = 40000;

// follow reads a stream of server-sent events, and opens it again from the last ID when it stops before its end: with
// on.state "lost" if it broke, and silently if the server ended it, which then asks again who reads it. on.event gets
// (type, data), on.state also "open", "end" or "refused". It returns a function that stops.
export function follow(p, on, after) {
  if (embedded) {
    const all = embedded.documents[p]?.events ?? [];
    queueMicrotask(() => { for (const e of all) on.event(e.type, e); on.state?.("end"); });
    return () => {};
  }
  let abort, stopped = false, heard = Date.now(), last = after ?? "", wait = 500, ended = false, said = "";
  const say = (state, err) => { if (state !== said) on.state?.(said = state, err); };
  const watch = setInterval(() => { if (Date.now() - heard > silence) abort.abort(); }, 1000);
  const open = async () => {
    abort = new AbortController();
    heard = Date.now();
    let broken = true;
    try {
      const headers = { Accept: "text/event-stream" };
      if (last !== "") headers["Last-Event-ID"] = String(last);
      const res = await call(p, { headers, signal: abort.signal });
      say("open");
      wait = 500;
      await read(res.body, () => { heard = Date.now(); }, (id, type, data) => {
        if (type === "end") ended = true;
        else if (type === "failed") say("lost"); // it is opened again, and says why if it cannot be
        else on.event(type, data === "" ? {} : JSON.parse(data));
        if (id !== "") last = id;
      });
      broken = false;
    } catch (err) {
      if (!stopped && err.status >= 400 && err.status < 500 && err.status !== 429) {
        clearInterval(watch);
        say("refused", err);
        return;
      }
    }
    if (stopped) return;
    if (ended) {
      clearInterval(watch);
      say("end");
      return;
    }
    if (broken) say("lost");
    setTimeout(open, wait);
    wait = Math.min(wait * 2, 10000);
  };
  open();
  return () => {
    stopped = true;
    clearInterval(watch);
    abort.abort();
  };
}

// read parses the lines of a stream of server-sent events.
async function read(body, hear, event) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", id = "", type = "message", data = "", any = false;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    hear();
    rest += value;
    let at = 0, end;
    while ((end = rest.indexOf("\n", at)) >= 0) {
      const line = rest.charCodeAt(end - 1) === 13 && end > at ? rest.slice(at, end - 1) : rest.slice(at, end);
      at = end + 1;
      if (line === "") {
        if (any || type !== "message") event(id, type, data);
        type = "message";
        data = "";
        any = false;
      } else if (line.startsWith("data:")) {
        data += (any ? "\n" : "") + line.slice(line[5] === " " ? 6 : 5);
        any = true;
      } else if (line.startsWith("event:")) type = line.slice(6).trim();
      else if (line.startsWith("id:")) id = line.slice(3).trim();
    }
    rest = rest.slice(at);
  }
}
