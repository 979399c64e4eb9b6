// A question to a person, with the form of its answer.

import { path, post } from "./api.js";
import { ago, bdi, bold, code, field, fill, h, labelChip, muted, note, short, shown, toast, told } from "./dom.js";
import { textBlock } from "./text.js";

let serial = 0;

// showQuestions shows the open questions, each in its card, and opens the only one. It leaves alone the cards of
// questions that are still open, since somebody may be writing.
export function showQuestions(app, el, open, withRun) {
  for (const card of [...el.children]) if (!open.some((q) => keyOf(q) === card.dataset.id)) drop(card);
  for (const q of open) if (![...el.children].some((card) => card.dataset.id === keyOf(q))) el.append(questionCard(app, q, withRun && q.runId, open.length === 1));
}

// keyOf identifies a question and whether the viewer may answer it, which their other answers change.
function keyOf(q) { return q.runId + q.id + (q.denied ?? ""); }

function drop(card) {
  for (const el of card.querySelectorAll(".tv")) el.view.close();
  card.remove();
}

// questionCard shows an open question; withRun adds the link to its run.
function questionCard(app, q, withRun, only) {
  const id = "q" + ++serial, inputs = new Map();
  const status = h("div", { role: "alert" });
  const reason = h("input", { id: id + "-reason", type: "text", autocomplete: "off" });
  const fields = (q.fields ?? []).map((f) => formField(id, f, inputs));
  const text = fields.length === 0 && h("textarea", { id: id + "-text", rows: 3 });
  const form = app.viewer.canAnswer && !q.denied && h("form", { class: "form" }, fields,
    text && field(id + "-text", q.schema ? "Answer (JSON)" : "Answer", text),
    field(id + "-reason", "Why? (kept with the answer)", reason), status,
    h("footer", null, h("button", { type: "submit", class: "primary" }, "Answer")));
  const isOfTask = q.tool || q.approval && q.approval !== "plan", what = q.tool ? ["May ", bold(q.agent), " allow the call of ", bdi(q.tool), "?"] : q.approval ? ["Approve ", bdi(q.approval === "plan" ? "the plan" : q.approval), "?"] : [bdi(q.taskName || q.title || "to a person")];
  const card = h("details", { class: "card question", open: only || !withRun && q.status === "suspended", data: { id: keyOf(q), task: q.task } },
    h("summary", null, h("span", { class: "q-what" }, "Question: ", what), isOfTask && muted(" in the task ", bdi(q.taskName || q.title)), q.agent && muted(" for ", bdi(q.agent), ", asked " + ago(q.askedAt)), " ", labelChip(q.label),
      withRun && h("span", { class: "q-run muted" }, bdi(q.name || "run"), " ", short(q.runId))),
    h("div", { class: "q-body" }, h("div", { class: "q-asks" }, asks(q), withRun && h("p", { class: "q-link" }, h("a", { href: "#/runs/" + encodeURIComponent(q.runId) }, "Open the run"))),
      h("div", { class: "q-answer" }, q.users && note("Who may answer: ", q.users.map((x, i) => [i ? ", " : "", bold(x)])), q.denied ? h("p", { class: "notice" }, "You may not answer this: ", bdi(q.denied), ".") : form || note("To answer: ", code(q.answerCommand)))));
  if (form) form.addEventListener("submit", (e) => { e.preventDefault(); answer(q, inputs, text, reason, status, card); });
  return card;
}

// asks shows what to decide, the texts that this is about with what the gate did to each, all lines of them, and the
// prompt behind a click.
function asks(q) {
  const { decide, texts } = q.asks ?? {};
  const prompt = h("details", { class: "q-prompt", ontoggle: () => { if (prompt.children.length === 1) prompt.append(textBlock(q.prompt, { label: "The prompt", most: 20 }).el); } },
    h("summary", null, "As the agent would see it"));
  return [h("p", { class: "q-decide" }, shown(decide ?? "")),
    (texts ?? []).map((x) => {
      const head = [h("span", null, x.name && bold(x.name), x.from && [" from ", bold(x.from)]), " ", labelChip(x.label), x.marks?.map((m) => [" ", h("span", { class: "tag warn" }, bdi(m))])];
      return x.withheld ? h("p", { class: "source withheld" }, head, " ", bdi(x.text)) : textBlock(x.text, { label: x.name || "The text", head, most: 14 }).el;
    }), prompt];
}

function formField(id, f, inputs) {
  const fid = id + "-" + f.name, about = f.description && h("p", { class: "hint", id: fid + "-about" }, bdi(f.description));
  const described = about ? fid + "-about" : undefined, title = f.name + (f.required ? "" : " (optional)");
  if (f.choices?.length || f.kind === "yes or no" || f.kind === "yesNo" || f.kind === "boolean") {
    const choices = f.choices?.length ? f.choices : [true, false];
    const name = fid, radios = choices.map((c, i) => {
      const r = h("input", { type: "radio", name, id: fid + i, required: f.required, "aria-describedby": described });
      return { r, c, el: h("label", { class: "choice", for: fid + i }, r, bdi(c === true ? "yes" : c === false ? "no" : String(c))) };
    });
    inputs.set(f.name, () => radios.find((x) => x.r.checked)?.c);
    return h("fieldset", { class: "field" }, h("legend", null, title), radios.map((x) => x.el), about);
  }
  const number = f.kind === "number";
  const input = f.kind === "text" || f.kind === "JSON" || f.kind === "json" ? h("textarea", { id: fid, rows: 2, required: f.required, "aria-describedby": described })
    : h("input", { id: fid, type: number ? "number" : "text", step: "any", required: f.required, "aria-describedby": described });
  inputs.set(f.name, () => {
    if (input.value === "") return undefined;
    if (number) return Number(input.value);
    if (/json/i.test(f.kind)) try { return JSON.parse(input.value); } catch { return input.value; }
    return input.value;
  });
  return field(fid, title, input, about);
}

async function answer(q, inputs, text, reason, status, card) {
  const body = { reason: reason.value };
  if (text) body.text = text.value;
  else {
    body.fields = {};
    for (const [name, value] of inputs) if (value() !== undefined) body.fields[name] = value();
  }
  try {
    const { taken } = await post(path(...(q.runId ? ["runs", q.runId] : []), "questions", q.id, "answer"), body);
    toast(taken ? "The run has taken the answer" : "The answer is stored; the run takes it when it continues");
    drop(card);
  } catch (err) {
    if (err.code === "conflict") err.message = "Somebody else answered first: " + err.message;
    fill(status, told(err));
  }
}
