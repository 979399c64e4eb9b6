// "How did this text get here?": follows a text back to who introduced it.

import { exported, get, ofRun } from "./api.js";
import { bdi, bold, button, count, dialog, failure, fill, h, loading, muted, note, plural } from "./dom.js";

let float;

// origin returns the function that offers to follow what is selected in a text view.
export function origin(page, task) {
  return (text, rect, now) => {
    text = text.trim();
    if (text.length < 2) return hide();
    if (now) return trace(page, text, task);
    offer(text, rect, () => trace(page, text, task));
  };
}

function hide() {
  float?.remove();
  float = null;
}

function offer(text, rect, go) {
  if (!float) {
    float = button("", () => { float.go(); hide(); }, { class: "float primary" });
    float.addEventListener("mousedown", (e) => e.preventDefault());
    document.body.append(float);
    const away = () => {
      if (!document.getSelection()?.isCollapsed) return;
      hide();
      document.removeEventListener("mouseup", later);
    };
    const later = () => setTimeout(away, 50);
    document.addEventListener("mouseup", later);
  }
  float.go = go;
  fill(float, "How did this text get here? ", h("kbd", null, "W"));
  const width = 250;
  float.style.setProperty("left", Math.max(8, Math.min(innerWidth - width, rect.left)) + "px");
  float.style.setProperty("top", Math.max(8, rect.top > 60 ? rect.top - 42 : rect.bottom + 8) + "px");
}

const places = { prompt: "in the prompt", system: "in the system prompt", result: "in the result", structured: "in the structured result", answer: "in the answer" };

function originText(o) {
  switch (o.kind) {
    case "spec": return o.by === "runteam" ? ["the words of runteam itself"] : [bdi(o.name), ", as it is written"];
    case "input": return ["input ", bold(o.name), " of ", bdi(o.by)];
    case "goal": return ["the goal of ", bdi(o.by)];
    case "task": return [bold(o.by), ", who did ", bold(o.name)];
    case "message": return ["a message of ", bdi(o.by)];
  }
  return [bdi(o.name), " of ", bdi(o.by)];
}

// trace opens the way of a text through the run.
export async function trace(page, text, task) {
  hide();
  const body = h("div", { class: "pad trace" }, loading("where this text occurs"));
  const d = dialog("How did this text get here?", body, { class: "sheet" });
  const show = async () => {
    try {
      const doc = exported ? await searchExport(page, text) : await get(ofRun(page, "receipts") + "?contains=" + encodeURIComponent(text));
      draw(page, text, task, doc.found, body, d);
    } catch (err) {
      fill(body, quote(text), failure(err, show));
    }
  };
  await show();
}

function quote(text) {
  return h("blockquote", { class: "quoted" }, bdi(text.length > 400 ? text.slice(0, 400) + "…" : text));
}

function draw(page, text, task, found, body, d) {
  const { occurrences, origins, unsearched } = found, missed = unsearched > 0 && note(plural(unsearched, "piece") + " above your clearance were not searched.");
  if (occurrences.length === 0) {
    fill(body, quote(text), h("p", null, "This text occurs in nothing that you may see."), missed);
    return;
  }
  const steps = group(page, occurrences), way = wayTo(steps, task), on = steps.filter((st) => way.has(st)), off = steps.filter((st) => !way.has(st));
  fill(body, quote(text),
    h("div", { class: "origins" }, origins.map((o, i) => h("p", { class: i ? "origin also" : "origin" }, h("span", { class: "origin-word" }, i ? "also from" : "comes from"), " ", originText(o),
      o.task && [" ", button("open", () => jump(page, d, { task: o.task, where: "result" }), { class: "link" })],
      o.unseen > 0 && muted(" unless it was in " + plural(o.unseen, "withheld piece") + " of its prompt")))),
    h("h3", null, task ? "Its way to here" : "Its way through the run", " ", muted(plural(occurrences.length, "place"))),
    h("ol", { class: "way" }, originStep(origins[0]), on.map((st) => step(page, d, st, task))),
    off.length > 0 && h("details", null, h("summary", null, "It also reached ", plural(off.length, "other task")), h("ol", { class: "way" }, off.map((st) => step(page, d, st, task)))),
    missed);
  body.querySelector("button")?.focus();
}

function originStep(o) {
  if (!o || o.kind === "task") return null;
  return h("li", { class: "way-origin" }, h("div", null, originText(o)));
}

// group joins the places of one task.
function group(page, occurrences) {
  const by = new Map();
  for (const o of occurrences) {
    const k = o.task ?? "answer";
    (by.get(k) ?? by.set(k, { task: o.task, title: o.title, agent: o.agent, places: [] }).get(k)).places.push(o);
  }
  const at = (x) => Date.parse(page.state.tasks.get(x.task)?.startedAt ?? "") || Infinity;
  return [...by.values()].sort((a, b) => at(a) - at(b));
}

// wayTo returns the places from which the text came to a task, one handoff after another: those of
// the task, of the tasks whose results its prompt has the text from, and so on.
function wayTo(steps, task) {
  const start = steps.find((st) => st.task === task) ?? steps.findLast((st) => st.task && st.places.some((o) => o.where === "result"));
  if (!start) return new Set(steps);
  const way = new Set([start]);
  for (const st of way) {
    for (const from of st.places.flatMap((o) => o.from ?? [])) {
      const title = /^(?:result|output files) of (.+) from [^,]+(?:,|$)/.exec(from)?.[1];
      const before = title && steps.find((x) => x.title === title || from.startsWith("result of " + x.title + " from "));
      if (before) way.add(before);
    }
  }
  return way;
}

function step(page, d, st, here) {
  const seen = new Map();
  for (const o of st.places) {
    const k = o.where + (o.attempt ?? "");
    (seen.get(k) ?? seen.set(k, []).get(k)).push(o);
  }
  const t = page.state.tasks.get(st.task);
  return h("li", { class: st.task === here ? "here" : "" },
    h("div", null, bold(t?.name || st.title || "the answer"), st.agent && muted(" by ", bdi(st.agent)), st.task === here && h("span", { class: "tag" }, "here"),
      h("ul", { class: "plain" }, [...seen.values()].map((list) => h("li", null,
        list.slice(0, 8).map((o, i) => button(i ? count(i + 1) : places[o.where] + (o.attempt > 1 ? ", attempt " + o.attempt : ""), () => jump(page, d, o), { class: "link" + (i ? " num" : ""), "aria-label": places[o.where] + ", place " + (i + 1) })).flatMap((b, i) => i ? [" · ", b] : [b]), list.length > 8 && muted(" and " + plural(list.length - 8, "more place")),
        [...new Set(list.flatMap((o) => o.from ?? []))].map((f) => h("div", { class: "from muted" }, "↳ ", bdi(f))), list[0].loose && muted(" with other whitespace"))))));
}

function jump(page, d, o) {
  d.close();
  if (!o.task) return page.app.go(page.link("answer"));
  const tab = o.where === "result" || o.where === "structured" ? "result" : "prompt";
  page.openTask(o.task, { tab, ...(o.end ? { where: o.where, at: o.start + "-" + o.end, ...(o.attempt ? { attempt: o.attempt } : {}) } : {}) });
}

// searchExport searches the documents of an exported run.
async function searchExport(page, text) {
  const occurrences = [], introduced = new Map(), enc = new TextEncoder();
  const { prompts } = await get(ofRun(page, "receipts"));
  const bytesTo = (words, i) => enc.encode(words.slice(0, i)).length;
  for (const p of prompts) {
    const base = { task: p.task, title: p.title, agent: p.agent, attempt: p.attempt };
    for (const [where, pieces] of [["system", p.system ?? []], ["prompt", p.text ?? []]]) {
      const words = pieces.map((x) => x.words ?? "\u0000".repeat(x.end - x.start)).join("");
      for (let i = words.indexOf(text); i >= 0; i = words.indexOf(text, i + 1)) {
        const start = (pieces[0]?.start ?? 0) + bytesTo(words, i), end = start + enc.encode(text).length;
        const from = pieces.filter((x) => x.start < end && x.end > start);
        occurrences.push({ ...base, where, start, end, from: from.map((x) => x.from) });
        for (const x of from) originOf(introduced, p.sources[x.source], x);
      }
    }
  }
  const results = page.state.order.filter((t) => t.result?.includes(text));
  for (const t of results) {
    const start = bytesTo(t.result, t.result.indexOf(text));
    occurrences.push({ where: "result", task: t.id, title: t.title, agent: t.assignee, start, end: start + enc.encode(text).length });
  }
  if (introduced.size === 0 && results[0]) introduced.set("", { by: results[0].assignee, kind: "task", name: results[0].title, task: results[0].id });
  return { found: { occurrences, origins: [...introduced.values()], unsearched: 0 } };
}

function originOf(all, source, piece) {
  if (piece.source < 0) return;
  const d = source.decision;
  if (!d) all.set("spec" + source.spec, { by: source.producer, kind: "spec", name: source.spec ?? piece.from });
  else if (d.source.kind === "input" || d.source.kind === "goal" || d.source.kind === "message") all.set(d.source.kind + d.source.name, { by: d.from, kind: d.source.kind, name: d.source.name });
}
