// A chat: what a person and an agent have said in the turns of a session, and a field for the next message.

import { follow, get, ofRun, post } from "./api.js";
import { bdi, bold, button, code, failure, fill, h, labelChip, loading, muted, short, statusChip, told, visible } from "./dom.js";
import { answerBlock } from "./markdown.js";

export class ChatPage {
  // spec is that of a new session.
  constructor(app, session, spec) {
    Object.assign(this, { app, session, spec, answers: new Map() });
    app.title("Chat");
    this.head = h("header", { class: "chat-head" });
    this.said = h("ol", { class: "said plain", "aria-live": "polite", "aria-label": "What was said" });
    this.problems = h("div", { role: "alert" });
    this.field = h("textarea", { id: "chat-text", rows: 3, "aria-label": "Message", placeholder: "Write a message. Enter sends it, Shift and Enter begin a new line.", onkeydown: (e) => {
      if (e.key !== "Enter" || e.shiftKey || e.isComposing) return;
      e.preventDefault();
      this.send();
    } });
    this.label = h("select", { id: "chat-label", "aria-label": "Label of the message" }, ["public", "internal", "confidential"].map((l) => h("option", { value: l, selected: l === "internal" }, l)));
    this.button = h("button", { type: "submit", class: "primary" }, "Send");
    this.form = h("form", { class: "form chat-form", hidden: true, onsubmit: (e) => { e.preventDefault(); this.send(); } }, this.problems, this.field, h("footer", null, this.label, this.button));
    this.el = h("div", { class: "page chat" }, this.head, this.said, this.form);
  }

  go() { if (!this.doc) this.load(); }

  close() {
    this.stop?.();
    for (const view of this.answers.values()) view.close();
  }

  async load() {
    if (!this.doc && this.session) fill(this.said, loading("the chat"));
    try {
      this.doc = this.session ? await get(ofRun({ id: this.session }, "session")) : { session: "", agent: this.spec, turns: [], canContinue: true };
      if (this.app.page === this) this.draw();
    } catch (err) {
      fill(this.said, failure(err, () => this.load()));
    }
  }

  draw() {
    const { doc } = this, may = doc.canContinue && this.app.viewer.canSteer;
    fill(this.app.crumbs, h("a", { href: "#/runs" }, "Runs"), h("span", { class: "sep", "aria-hidden": "true" }, "/"), h("span", null, "Chat ", doc.session && h("span", { class: "mono muted" }, short(doc.session))));
    fill(this.head, h("h1", null, "Chat with ", bdi(doc.agent)), doc.session && h("p", { class: "muted" }, "On a terminal: ", code("runteam chat --resume " + short(doc.session))));
    fill(this.said, doc.turns.flatMap((t) => this.turn(t)));
    this.form.hidden = !may;
    const live = doc.turns.find((t) => t.live);
    this.busy(Boolean(live));
    if (live) this.watch(live);
    else if (may && document.activeElement === document.body) this.field.focus({ preventScroll: true });
    this.said.lastElementChild?.scrollIntoView({ block: "nearest" });
  }

  // turn shows a message and its answer.
  turn(t) {
    const run = h("a", { class: "mono muted", href: "#/runs/" + encodeURIComponent(t.runId) }, "run ", short(t.runId));
    return [
      h("li", { class: "said-person" }, h("div", { class: "said-head" }, bold("You"), labelChip(t.label), muted("turn ", t.turn)), h("p", null, bdi(t.message))),
      h("li", { class: "said-agent", data: { run: t.runId } }, h("div", { class: "said-head" }, bold(this.doc.agent), t.status !== "ok" && statusChip(t.status), run), this.answer(t)),
    ];
  }

  // answer shows the answer of a turn, which does not change once it is there.
  answer(t) {
    if (t.live || !t.answer) return h("p", null, bdi(t.answer || (t.live ? "…" : "There is no answer.")));
    const view = this.answers.get(t.runId) ?? answerBlock(this, t.answer, { label: "Turn " + t.turn, path: ofRun({ id: t.runId }, "blocks"), most: 60 });
    this.answers.set(t.runId, view);
    return view.el;
  }

  busy(on) {
    this.field.disabled = this.button.disabled = on;
    this.button.textContent = on ? "Answering…" : "Send";
  }

  // watch shows the answer of a turn while it is written.
  watch(t) {
    this.stop?.();
    const text = this.said.querySelector(`[data-run="${CSS.escape(t.runId)}"] p`), steps = this.doc.agent === "coordinator" ? ["synthesis"] : ["Turn " + t.turn];
    let written = "";
    this.stop = follow(ofRun({ id: t.runId }, "stream"), {
      event: (_, d) => {
        if (!steps.includes(d.title)) return;
        written = (d.reset ? "" : written) + (d.text ?? "");
        if (text) text.textContent = visible(written);
      },
      state: (state) => { if (state === "end" || state === "refused") setTimeout(() => this.load(), state === "end" ? 100 : 1500); }, // of another process, only the end is known
    });
  }

  async send() {
    const text = this.field.value;
    if (text.trim() === "" || this.button.disabled) return;
    this.busy(true);
    fill(this.problems);
    try {
      const begun = await post("/chats", { text, label: this.label.value, ...(this.session ? { session: this.session } : { spec: this.spec }) });
      this.field.value = "";
      if (!this.session) history.replaceState(null, "", "#/chats/" + encodeURIComponent(begun.session));
      this.session = begun.session;
      this.app.key = "chats/" + begun.session;
      await this.load();
    } catch (err) {
      this.busy(false);
      fill(this.problems, told(err));
      this.field.focus();
    }
  }
}

// chats are the served specs that have a chat.
export function chatsOf(specs) { return specs.filter((x) => x.chat); }

// chatButtons lead to a new chat with each spec.
export function chatButtons(app, specs) {
  return chatsOf(specs).map((x) => button("Chat with " + x.chat + (chatsOf(specs).length > 1 ? " of " + x.name : ""), () => app.go("#/chats?" + new URLSearchParams({ spec: x.name }))));
}
