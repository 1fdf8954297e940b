// The table of probes. Every text comes from the data element and is put in as text, never as
// markup: it was said in conversations that nobody vouches for.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("probe-data").textContent);
  const body = document.querySelector("#probe-table tbody");
  const controls = [...document.querySelectorAll("[data-filter]")];
  const PER_PAGE = 50;
  const STAGES = new Map(Object.entries(data.stages).map(([name, said]) => [name.replaceAll("_", " "), said]));
  let page = 0;
  let open = null;
  let order = "none";
  const leading = (row) => row.scores[0];

  const element = (tag, text, className) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  const text = (number) => (number === null ? "" : data.texts[number]);
  const score = (value) => (value === null ? "–" : value.toFixed(2));

  const searched = new Map();
  const searchable = (row) => {
    let found = searched.get(row);
    if (found === undefined) {
      const parts = [row.probe, text(row.question), text(row.answer), text(row.failure)];
      for (const fact of row.facts) parts.push(text(fact[0]), fact[2]);
      for (const reason of row.reasons) parts.push(text(reason[2]));
      found = parts.join("\n").toLowerCase();
      searched.set(row, found);
    }
    return found;
  };

  const RESULTS = {
    miss: (row) => leading(row) !== null && leading(row) < data.miss,
    fine: (row) => leading(row) !== null && leading(row) >= data.miss,
    failed: (row) => leading(row) === null,
  };
  const filters = {
    arm: (row, value) => data.arms[row.arm] === value,
    unit: (row, value) => row.unit === value,
    type: (row, value) => row.type === value,
    result: (row, value) => (RESULTS[value] || (() => true))(row),
    stage: (row, value) => row.facts.some((fact) => fact[1] === value),
    q: (row, value) => value.toLowerCase().split(/\s+/).filter(Boolean)
      .every((word) => searchable(row).includes(word)),
  };

  const options = (name, values) => {
    const select = document.querySelector(`[data-filter="${name}"]`);
    for (const value of values) {
      const option = element("option", value);
      option.value = value;
      select.append(option);
    }
  };
  const distinct = (of) => [...new Set(data.rows.flatMap(of))].sort();
  options("arm", data.arms);
  options("unit", distinct((row) => [row.unit]));
  options("type", distinct((row) => [row.type]));
  options("stage", distinct((row) => row.facts.map((fact) => fact[1])));

  const chosen = () => {
    const wanted = controls.filter((control) => control.value !== "");
    const rows = data.rows.filter((row) =>
      wanted.every((control) => filters[control.dataset.filter](row, control.value)));
    const place = (row) => (leading(row) === null ? -1 : leading(row));
    const turn = order === "descending" ? -1 : 1;
    return rows.sort((one, other) =>
      (order === "none" ? one.arm - other.arm : 0) || turn * (place(one) - place(other)));
  };

  const table = (heads, rows, numbers) => {
    const made = element("table");
    const head = element("tr");
    for (const name of heads) head.append(element("th", name, "text"));
    made.append(element("thead"));
    made.firstChild.append(head);
    const lines = element("tbody");
    for (const row of rows) {
      const line = element("tr");
      row.forEach((cell, place) => {
        const made = element("td", cell, place === numbers ? "number" : "");
        if (STAGES.has(cell)) made.title = STAGES.get(cell);
        line.append(made);
      });
      lines.append(line);
    }
    made.append(lines);
    return made;
  };

  // The same probe in every arm: the epoch asked for, or an arm's first one.
  const peers = (row) => data.arms.map((_, arm) => {
    const found = data.rows.filter((each) =>
      each.arm === arm && each.unit === row.unit && each.probe === row.probe);
    return found.find((each) => each.epoch === row.epoch) || found[0];
  }).filter(Boolean);

  const beside = (row, cell) => {
    const all = peers(row);
    if (all.length < 2) return;
    const facts = row.facts.map((fact) => fact[0]);
    const stage = (each, fact) => {
      const found = each.facts.find((one) => one[0] === fact);
      return found ? found[1].replaceAll("_", " ") : "–";
    };
    cell.append(element("h3", "This probe in every arm"));
    const made = table(["Arm", "Knowledge", ...facts.map(text)], all.map((each) => [
      data.arms[each.arm], leading(each) === null ? "failed" : score(leading(each)),
      ...facts.map((fact) => stage(each, fact))]), 1);
    all.forEach((each, place) => { if (each.arm === row.arm) made.tBodies[0].rows[place].className = "this"; });
    const scroll = element("div", undefined, "scroll");
    scroll.append(made);
    cell.append(scroll);
  };

  const detail = (row) => {
    const cell = element("td");
    cell.colSpan = 8;
    cell.append(element("h3", "Question"), element("div", text(row.question), "pre"));
    cell.append(element("h3", "Answer"), element("div", text(row.answer) || "(none)", "pre"));
    if (row.failure !== null) {
      cell.append(element("h3", "No score"), element("div", text(row.failure), "pre"));
    }
    if (row.facts.length) {
      cell.append(element("h3", "Expected facts"));
      cell.append(table(["Fact", "What became of it", "Instead, in the state"],
        row.facts.map(([fact, stage, instead]) => [text(fact), stage.replaceAll("_", " "), instead])));
    }
    if (row.reasons.length) {
      cell.append(element("h3", "Grades"));
      cell.append(table(["Criterion", "Score", "Reason"],
        row.reasons.map(([criterion, value, reason]) => [criterion, score(value), text(reason)]), 1));
    }
    beside(row, cell);
    const link = element("a", "Open this sample in Inspect's viewer");
    link.href = `${data.logs[row.log]}/${encodeURIComponent(row.sample)}/${row.epoch}/`;
    link.target = "_blank";
    link.rel = "noopener noreferrer";
    cell.append(link, element("span", " (the viewer must be running, see above)", "soft"));
    const line = element("tr", undefined, "more");
    line.append(cell);
    return line;
  };

  const line = (row) => {
    const made = element("tr", undefined, "row");
    made.tabIndex = 0;
    const value = leading(row);
    const low = value === null || value < data.miss ? "low" : "";
    const asked = element("td", undefined, "asked");
    asked.append(element("div", value === null ? text(row.failure) : text(row.question)));
    made.append(
      element("td", data.arms[row.arm]), element("td", row.unit), element("td", row.probe),
      element("td", row.type), element("td", String(row.epoch)),
      element("td", value === null ? "failed" : score(value), low),
      element("td", row.scores.at(-2) === null ? "–" : `${Math.round(row.scores.at(-2) * 100)} %`),
      asked);
    const toggle = () => { open = open === row ? null : row; show(); };
    made.addEventListener("click", toggle);
    made.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggle(); }
    });
    return made;
  };

  const show = () => {
    const rows = chosen();
    const pages = Math.max(1, Math.ceil(rows.length / PER_PAGE));
    page = Math.min(page, pages - 1);
    body.replaceChildren();
    for (const row of rows.slice(page * PER_PAGE, (page + 1) * PER_PAGE)) {
      body.append(line(row));
      if (row === open) body.append(detail(row));
    }
    document.getElementById("found").textContent =
      `${rows.length} of ${data.rows.length} answers, page ${page + 1} of ${pages}`;
    document.getElementById("earlier").disabled = page === 0;
    document.getElementById("later").disabled = page >= pages - 1;
    document.querySelector("#by-score").setAttribute("aria-sort", order);
    document.body.dataset.shown = String(rows.length);
  };

  // Filters stand in the address, so that a view of the table can be passed on.
  const MARK = "#probes?";
  const fromAddress = () => {
    if (!location.hash.startsWith(MARK)) return;
    const given = new URLSearchParams(location.hash.slice(MARK.length));
    for (const control of controls) control.value = given.get(control.dataset.filter) || "";
    page = 0;
    open = given.has("open") ? chosen()[0] || null : null;
    show();
    document.getElementById("probes").scrollIntoView();
  };
  const toAddress = () => {
    const given = new URLSearchParams();
    for (const control of controls) if (control.value) given.set(control.dataset.filter, control.value);
    try { history.replaceState(null, "", given.size ? MARK + given : "#probes"); } catch { /* a page from a file may not */ }
  };
  for (const control of controls) {
    control.addEventListener("input", () => { page = 0; open = null; toAddress(); show(); });
  }
  document.getElementById("clear").addEventListener("click", () => {
    for (const control of controls) control.value = "";
    page = 0; open = null; toAddress(); show();
  });
  document.getElementById("earlier").addEventListener("click", () => { page -= 1; show(); });
  document.getElementById("later").addEventListener("click", () => { page += 1; show(); });
  document.querySelector("#by-score button").addEventListener("click", () => { order = order === "ascending" ? "descending" : "ascending"; page = 0; show(); });
  window.addEventListener("hashchange", fromAddress);
  show();
  fromAddress();
})();
