"use strict";
(() => {
  const get = (id) => document.getElementById(id);
  const data = JSON.parse(get("data").textContent);

  // cumulative from the most confident row down: kept[i] rows have a probability of at least level[i] units
  const level = [data.start], kept = [], wrong = [];
  data.down.forEach((step, i) => level.push(level[i] - step));
  data.rows.reduce((sum, rows, i) => (kept[i] = sum + rows), 0);
  data.wrong.reduce((sum, rows, i) => (wrong[i] = sum + rows), 0);

  function groupsAbove(threshold) {
    const least = Math.ceil(threshold / data.unit - 1e-6);
    let low = 0, high = level.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (level[middle] >= least) low = middle + 1; else high = middle;
    }
    return low;
  }

  const slider = get("threshold"), exact = get("exact"), costError = get("cost-error"), costRejection = get("cost-rejection");
  const thousands = (value) => String(value).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  const positive = (input) => Math.max(0, Number(input.value) || 0);
  const costOf = (mistakes, rejected) => mistakes * positive(costError) + rejected * positive(costRejection);

  function show() {
    const threshold = Math.min(Math.max(Number(exact.value) || 0, 0), 1 + data.unit);
    const groups = groupsAbove(threshold);
    const rows = groups ? kept[groups - 1] : 0, mistakes = groups ? wrong[groups - 1] : 0;
    const rejected = data.n - rows, cost = costOf(mistakes, rejected);
    const coverage = (100 * rows / data.n).toFixed(1) + " %";
    const risk = rows ? (100 * mistakes / rows).toFixed(2) + " %" : "–";
    get("coverage").textContent = coverage;
    get("risk-kept").textContent = risk;
    get("mistakes").textContent = thousands(mistakes);
    get("rejected").textContent = thousands(rejected);
    get("cost").textContent = (cost / data.n).toFixed(4);
    get("cost-all").textContent = cost.toFixed(2);
    const said = `${thousands(rows)} of ${thousands(data.n)} rows are kept, ${thousands(mistakes)} of them wrong.`;
    get("decision").textContent = said;
    slider.setAttribute("aria-valuetext", `${threshold.toFixed(3)}: ${coverage} kept, ${risk} of them wrong`);
    moveMarker(rows / data.n, rows ? mistakes / rows : 0);
  }

  const [left, right, bottom, top, highest] = get("risk").dataset.ends.split(" ").map(Number);
  function moveMarker(coverage, risk) {
    const x = left + coverage * (right - left), y = bottom + Math.min(risk / highest, 1) * (top - bottom);
    get("risk-marker").setAttribute("cx", x.toFixed(1));
    get("risk-marker").setAttribute("cy", y.toFixed(1));
    get("risk-guide").setAttribute("d", `M${x.toFixed(1)} ${bottom}V${top}`);
  }

  function cheapest() {
    let best = level.length, least = costOf(wrong[best - 1], 0);
    for (let groups = level.length - 1; groups >= 0; groups--) {
      const cost = groups ? costOf(wrong[groups - 1], data.n - kept[groups - 1]) : costOf(0, data.n);
      if (cost < least) [best, least] = [groups, cost];
    }
    const threshold = best === level.length ? 0 : best ? level[best - 1] * data.unit : (level[0] + 1) * data.unit;
    exact.value = String(Number(threshold.toFixed(6)));
    slider.value = exact.value;
    show();
  }

  slider.addEventListener("input", () => { exact.value = slider.value; show(); });
  exact.addEventListener("input", () => { slider.value = exact.value; show(); });
  for (const input of [costError, costRejection]) input.addEventListener("input", show);
  get("cheapest").addEventListener("click", cheapest);

  const choice = get("class");
  function mark() {
    for (const line of document.querySelectorAll("[data-class]")) {
      const own = line.dataset.class === choice.value;
      line.classList.toggle("chosen", own);
      if (own) line.parentNode.append(line); // draw it last, so that it is on top
    }
    get("class-numbers").textContent = data.classes[Number(choice.value)];
  }
  choice.addEventListener("change", mark);

  function sort(table, column, heading) {
    const rising = heading.getAttribute("aria-sort") !== "ascending", body = table.tBodies[0];
    const keyOf = (row) => {
      const cell = row.cells[column];
      return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
    };
    const unknown = (key) => typeof key === "number" && Number.isNaN(key);
    const compare = (a, b) => {
      if (unknown(a) || unknown(b)) return unknown(a) - unknown(b); // missing values stay at the end
      const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
      return rising ? order : -order;
    };
    const rows = [...body.rows].map((row) => [keyOf(row), row]).sort((a, b) => compare(a[0], b[0]));
    body.append(...rows.map((pair) => pair[1]));
    for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
    heading.setAttribute("aria-sort", rising ? "ascending" : "descending");
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      heading.querySelector("button").addEventListener("click", () => sort(table, column, heading));
    });
  }

  show();
  mark();
})();
