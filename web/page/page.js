"use strict";
// Puts what the model's own code says into its places. Nothing here decides anything about the case, and whatever comes
// from a table is set as text, never as markup.
(() => {
  const at = (id) => document.getElementById(id);
  const text = (id, what) => { at(id).textContent = what ?? ""; };
  const show = (id, is) => { at(id).hidden = !is; };
  const make = (tag, attributes = {}, ...inside) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...inside);
    return element;
  };

  const bytesOf = (id) => {
    const letters = at(id).textContent;
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(letters);
    return Uint8Array.from(atob(letters), (letter) => letter.charCodeAt(0));
  };

  const unpack = async (id) => {
    const stream = new Blob([bytesOf(id)]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  };

  const trouble = (what) => {
    text("trouble", what);
    show("trouble", true);
    show("all", false);
  };

  // What the page asks first is in it, as every case begins so: it is shown before the code is there (`ready`).
  let code, model, view, shown, ready;

  // Calls a function of the code with some bytes; gives what it says, and whether that went well.
  const call = (name, bytes, ...more) => {
    // The memory may grow with each call, and is another buffer then.
    const room = code.room(bytes.length);
    new Uint8Array(code.memory.buffer, room, bytes.length).set(bytes);
    const isWell = code[name](...more);
    const [place, length] = [code.text(), code.text_len()];
    const told = new Uint8Array(code.memory.buffer, place, length);
    return [new TextDecoder().decode(told), isWell];
  };

  const say = async (wish, focus) => {
    try {
      await ready;
      const [told, isWell] = call("say", new TextEncoder().encode(JSON.stringify(wish)));
      if (!isWell) throw new Error(told);
      view = JSON.parse(told);
    } catch (error) {
      trouble(`The page cannot go on: ${error.message}. Open it again to begin anew.`);
      return;
    }
    draw(focus);
  };

  // The fields of a question. Each gives what was typed.
  const MISSING = ":missing";
  const FEW = 8;
  let typed = [];

  const textField = (field, index, isOnly, draft) => {
    const input = make("input", {
      type: "text", id: `field-${index}`, autocomplete: "off", autocapitalize: "off", spellcheck: "false",
      inputmode: field.kind === "number" ? "decimal" : null,
      "aria-labelledby": isOnly ? "question" : null,
      "aria-describedby": `hint-${index} refusal${isOnly ? " price" : ""}`,
      list: field.values ? `words-${index}` : null,
    });
    const entry = make("div", { class: "entry" }, input);
    let isMissing = false;
    if (model.missing) {
      const name = view.ask.given ? "Not known" : "No result";
      const toggle = make("button", { type: "button", "aria-pressed": "false", "aria-label": `${name}: ${field.label}` }, name);
      const set = (is) => {
        isMissing = is;
        input.disabled = is;
        toggle.setAttribute("aria-pressed", is);
      };
      toggle.addEventListener("click", () => { set(!isMissing); if (!isMissing) input.focus(); });
      entry.append(toggle);
      if (draft === "") set(true);
    }
    if (draft) input.value = draft;
    typed.push(() => (isMissing ? MISSING : input.value));
    const box = make("div", { class: "field" });
    if (!isOnly) box.append(make("label", { for: input.id }, field.label));
    box.append(entry, make("p", { class: "soft", id: `hint-${index}` }, hint(field)));
    if (field.values) box.append(make("datalist", { id: `words-${index}` }, ...field.values.map((word) => make("option", { value: word }))));
    return box;
  };

  const hint = (field) => (field.open ? `${field.expected}, or another word` : field.expected);

  // Another word than those of the table, for a field that takes one: to be typed once it is chosen.
  const otherWord = (index) => {
    const input = make("input", { type: "text", id: `other-${index}`, autocomplete: "off", "aria-label": "Another word", "aria-describedby": "refusal" });
    return [input, make("div", { class: "entry other", hidden: true }, input)];
  };

  // A few words: as buttons that answer at once if that is all that is asked for, else to choose from.
  const wordField = (field, index, isOnly, draft) => {
    const words = field.values.map((word) => [word, word]);
    if (model.missing) words.push([view.ask.given ? "Not known" : "No result", MISSING]);
    const was = draft === "" ? MISSING : draft;
    const [other, otherBox] = otherWord(index);
    const isOther = field.open && Boolean(draft) && !field.values.includes(draft);
    if (isOther) other.value = draft;
    if (isOnly) {
      const choices = words.map(([label, word]) => {
        const button = make("button", { type: "button", "aria-pressed": was === word ? "true" : null }, label);
        button.addEventListener("click", () => say({ answer: [word] }, true));
        return button;
      });
      if (field.open) {
        const button = make("button", { type: "button" }, "Another word…");
        button.addEventListener("click", () => {
          otherBox.hidden = false;
          show("next", true);
          other.focus();
        });
        choices.push(button);
      }
      typed.push(() => other.value);
      otherBox.hidden = !isOther;
      return make("div", { class: "field", role: "group", "aria-labelledby": "question", "aria-describedby": "price" },
        make("div", { class: "choices" }, ...choices), otherBox);
    }
    const radio = (label, isChosen, leadsOn) => {
      const input = make("input", { type: "radio", name: `field-${index}`, checked: isChosen });
      input.addEventListener("change", () => { otherBox.hidden = !leadsOn; });
      return [input, make("label", { class: "choice" }, input, label)];
    };
    const radios = words.map(([label, word]) => [word, ...radio(label, was === word, false)]);
    if (field.open) radios.push([null, ...radio("Another word", isOther, true)]);
    otherBox.hidden = !isOther;
    typed.push(() => {
      const chosen = radios.find(([, input]) => input.checked);
      return chosen ? chosen[0] ?? other.value : "";
    });
    return make("fieldset", { class: "field", "aria-describedby": "refusal" }, make("legend", {}, field.label),
      make("div", { class: "choices" }, ...radios.map(([, , choice]) => choice)), otherBox);
  };

  const drawQuestion = () => {
    const { ask } = view;
    const fields = ask?.fields ?? [];
    const isOnly = fields.length === 1 && !ask.given;
    // The same question again, such as after a move of the slider: what was typed stays.
    const key = JSON.stringify([ask, view.trace.rows, view.later]);
    if (key === shown) return;
    shown = key;
    typed = [];
    text("question", !ask ? view.answer : ask.given ? "Known from the start" : isOnly ? fields[0].label : ask.name);
    at("question").classList.toggle("answer", !ask);
    text("price", !ask ? `The answer, after ${view.asked} asked and ${view.spent} spent`
      : ask.given ? "It costs nothing." : `Cost ${ask.cost}${isOnly ? "" : `, ${fields.length} values`}`);
    show("again", ask?.again);
    text("again", "You put this off; there is nothing else worth asking first.");
    show("form", ask);
    at("fields").replaceChildren(...fields.map((field, index) => {
      const draw = field.values && field.values.length <= FEW ? wordField : textField;
      return draw(field, index, isOnly, ask.draft?.[index]);
    }));
    // Buttons answer by themselves, unless another word is typed.
    const isTyped = [...at("fields").querySelectorAll("input[type=text]")].some((input) => !input.parentElement.hidden);
    show("next", isTyped || !isOnly);
    show("later", ask && !ask.given);
    at("later").disabled = !ask?.other;
    show("unavailable", ask && !ask.given);
  };

  const bar = (name, percent, share, isTop) => {
    const inside = make("div");
    inside.style.width = `${100 * (share ?? 0)}%`;
    return make("li", { class: isTop ? "top" : null }, make("span", {}, name), make("span", {}, percent),
      make("div", { class: "track", "aria-hidden": "true" }, inside));
  };

  // The bars stay and change their lengths, so that a change is seen.
  const drawBelief = () => {
    const list = at("belief");
    const isSame = list.children.length === view.belief.length
      && view.belief.every(({ class: name }, index) => list.children[index].firstChild.textContent === name);
    if (!isSame) list.replaceChildren(...view.belief.map((of) => bar(of.class, of.percent, of.p, of.top)));
    view.belief.forEach((of, index) => {
      const item = list.children[index];
      item.className = of.top ? "top" : "";
      item.children[1].textContent = of.percent;
      item.lastChild.firstChild.style.width = `${100 * of.p}%`;
    });
  };

  const drawWhy = () => {
    show("why", view.why);
    if (!view.why) return;
    text("why-head", view.ask ? "Why this question?" : "Why stop here?");
    text("why-words", `${view.why.words}.`);
    text("why-stop", view.why.stop);
    const { wanted, stop } = view.why.more;
    const weighed = wanted.filter(({ share }) => share !== null);
    const bars = weighed.map(({ feature, share }, index) => bar(feature, `${(100 * share).toFixed(1)}%`, share, index === 0 && !view.why.more.stops));
    if (stop.share !== undefined) bars.push(bar("stop asking", `${(100 * stop.share).toFixed(1)}%`, stop.share, view.why.more.stops));
    at("wanted").replaceChildren(...bars);
  };

  const drawTrace = () => {
    const { head, rows } = view.trace;
    show("history", rows.length > 0);
    const line = (tag, cells) => make("tr", {}, ...cells.map((cell) => make(tag, tag === "th" ? { scope: "col" } : {}, cell)));
    at("trace").replaceChildren(make("thead", {}, line("th", head)), make("tbody", {}, ...rows.map((row) => line("td", row))));
  };

  const drawSettings = () => {
    show("tradeoff", view.alpha);
    if (view.alpha) {
      if (document.activeElement !== at("place")) at("place").value = view.alpha.place;
      at("place").setAttribute("aria-valuetext", `α ${view.alpha.alpha}`);
      text("expected", view.alpha.expected);
    }
    if (document.activeElement !== at("budget")) at("budget").value = view.budget ?? "";
  };

  const draw = (focus) => {
    const left = view.left === null ? "" : `, ${view.left} left of ${view.budget}`;
    text("sums", `${view.asked} asked, ${view.spent} spent${left}`);
    drawQuestion();
    drawBelief();
    drawWhy();
    drawTrace();
    drawSettings();
    at("warnings").replaceChildren(...view.warnings.map((what) => make("li", {}, what)));
    show("warnings", view.warnings.length > 0);
    text("put-off", view.later.length > 0 ? `For later: ${view.later.join(", ")}` : "");
    show("put-off", view.later.length > 0);
    at("back").disabled = !view.undo;
    const { refusal } = view;
    text("refusal", refusal ? refusal.what + (refusal.doubtful ? " If it is meant, say it again." : "") : "");
    document.querySelectorAll("#fields input").forEach((input) => input.removeAttribute("aria-invalid"));
    const top = view.belief.find((of) => of.top);
    const believed = top ? `${top.class} ${top.percent}. ` : "";
    text("status", `${view.warnings.join(". ")} ${view.answer ? `The answer is ${view.answer}. ` : ""}${believed}${at("sums").textContent}`.trim());
    if (focus) lead(refusal?.field ?? 0, refusal);
  };

  // Where typing goes on: the field that is wrong, the first one, or the answer.
  const lead = (index, refusal) => {
    const box = at("fields").children[index];
    const open = [...(box?.querySelectorAll("input[type=text]:not([disabled])") ?? [])].find((input) => !input.parentElement.hidden);
    const choice = box?.querySelector("input:checked") ?? box?.querySelector("button, input");
    const target = open ?? choice ?? at("question");
    if (refusal) target.setAttribute("aria-invalid", "true");
    target.focus();
    if (view.answer) at("question").scrollIntoView({ block: "nearest" });
  };

  const copy = async () => {
    const { head, rows } = view.trace;
    const table = [head, ...rows].map((row) => row.map((cell) => cell.replace(/[\t\r\n]/g, " ")).join("\t")).join("\n");
    try {
      await navigator.clipboard.writeText(table);
    } catch {
      // Where a file has no clipboard: the old way.
      const area = make("textarea", { class: "unseen", "aria-hidden": "true" });
      area.value = table;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
      at("copy").focus();
    }
    text("status", "Copied");
    text("copy", "Copied");
    setTimeout(() => text("copy", "Copy the table"), 2000);
  };

  const download = () => {
    const address = URL.createObjectURL(new Blob([view.trace.csv], { type: "text/csv" }));
    make("a", { href: address, download: "case.csv" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  };

  const listen = () => {
    const press = (id, what) => at(id).addEventListener("click", what);
    at("form").addEventListener("submit", (event) => {
      event.preventDefault();
      say({ answer: typed.map((read) => read()) }, true);
    });
    press("later", () => say("later", true));
    press("unavailable", () => say("unavailable", true));
    press("back", () => say("back", true));
    press("restart", () => say("restart", true));
    press("copy", copy);
    press("download", download);
    at("place").addEventListener("input", () => say({ place: Number(at("place").value) }, false));
    at("budget").addEventListener("change", () => {
      const wanted = at("budget").value.trim().replace(",", ".");
      const budget = wanted === "" ? null : Number(wanted);
      const isGood = budget === null || (Number.isFinite(budget) && budget >= 0);
      text("budget-refusal", isGood ? "" : `the budget is ${wanted}, but it must be zero or more`);
      if (isGood) say({ budget }, false);
    });
  };

  const greet = () => {
    const title = `${model.target ?? "Which is it"}?`;
    text("title", title);
    document.title = title;
    text("everything", `Everything there is to ask, ${model.features} in all, costs ${model.everything}.`);
    text("rows", `This page holds ${model.rows} rows of the table that the model was trained on: its method compares the case with them.`);
    show("rows", model.rows > 0);
    text("made", `Made by Querent; the model is of ${model.method}, trained by version ${model.version}.`);
    listen();
    show("all", true);
    // Where a keyboard would come up over the page, only once somebody touches a field.
    draw(!matchMedia("(pointer: coarse)").matches);
    performance.mark("first question");
  };

  const whole = () => new Promise((done) => {
    if (document.readyState !== "loading") done();
    else document.addEventListener("DOMContentLoaded", done);
  });

  const wake = async () => {
    await whole();
    const settings = JSON.parse(at("settings").textContent);
    const [program, bytes] = await Promise.all([unpack("code"), unpack("model")]);
    code = (await WebAssembly.instantiate(program, {})).instance.exports;
    const [told, isWell] = call("open", bytes, settings.budget ?? -1);
    if (!isWell) { trouble(`The model in this page cannot be used: ${told}`); throw new Error(told); }
    ({ model, view } = JSON.parse(told));
    draw(false);
    at("all").removeAttribute("aria-busy");
  };

  const useless = (error) => trouble(`This page cannot be used here: ${error.message}. It needs a browser of 2023 or later.`);
  try {
    ({ model, view } = JSON.parse(new TextDecoder().decode(bytesOf("opening"))));
    greet();
    ready = wake();
    ready.catch((error) => { if (at("trouble").hidden) useless(error); });
  } catch (error) {
    useless(error);
  }
})();
