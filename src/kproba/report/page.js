"use strict";
(() => {
  const get = (id) => document.getElementById(id);
  const data = JSON.parse(get("data").textContent);

  // numbers are written as the page writes them: two significant digits of small ones, and 0 only if they are
  const thousands = (value) => String(value).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  const digitsOf = (value) => Math.floor(Math.log10(Math.abs(value)));
  const share = (part, whole) => {
    if (!whole) return "–";
    const percent = 100 * part / whole, near = Math.min(percent, 100 - percent);
    if (near <= 0) return percent.toFixed(0) + " %";
    return percent.toFixed(near >= 1 ? 1 : Math.min((percent < 50 ? 1 : 0) - digitsOf(near), 5)) + " %";
  };
  const number = (value, digits = 3) => (value ? value.toFixed(Math.min(Math.max(digits, 1 - digitsOf(value)), 12)) : "0");
  const amount = (value) => {
    const [whole, cents] = value.toFixed(2).split(".");
    return thousands(whole) + (Number.isInteger(value) ? "" : "." + cents);
  };
  const put = (texts) => Object.entries(texts).forEach(([id, text]) => { get(id).textContent = text; });
  const positive = (input) => Math.max(0, Number(input.value) || 0);

  // cumulative from the most probable row down: rows[i] rows have at least level[i] units, marked[i] of them are marked
  function unpack(packed) {
    const level = [packed.start], rows = [], marked = [];
    packed.down.forEach((step, i) => level.push(level[i] - step));
    packed.rows.reduce((sum, n, i) => (rows[i] = sum + n), 0);
    packed.marked.reduce((sum, n, i) => (marked[i] = sum + n), 0);
    function above(threshold) { // the number of levels at or above the threshold
      const least = Math.ceil(threshold / packed.unit - 1e-6);
      let low = 0, high = level.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (level[middle] >= least) low = middle + 1; else high = middle;
      }
      return low;
    }
    const at = (groups) => (groups ? [rows[groups - 1], marked[groups - 1]] : [0, 0]);
    function cheapest(costOf) { // the lowest of the cheapest thresholds
      let best = level.length, least = costOf(...at(best));
      for (let groups = level.length - 1; groups >= 0; groups--) {
        const cost = costOf(...at(groups));
        if (cost < least) [best, least] = [groups, cost];
      }
      if (best === level.length) return 0;
      return Number(((best ? level[best - 1] : level[0] + 1) * packed.unit).toFixed(6));
    }
    return { at: (threshold) => at(above(threshold)), cheapest };
  }

  // a slider, an exact threshold, costs, and a button that goes to the cheapest threshold
  function tool(packed, ids, costOf, show) {
    const counts = unpack(packed), slider = get(ids.slider), exact = get(ids.exact), isLog = slider.dataset.log;
    const update = () => {
      const threshold = Math.min(Math.max(Number(exact.value) || 0, 0), 1 + packed.unit);
      slider.setAttribute("aria-valuetext", show(threshold, ...counts.at(threshold)));
    };
    const follow = () => { slider.value = isLog ? Math.log10(Math.max(Number(exact.value), 1e-9)) : exact.value; update(); };
    slider.addEventListener("input", () => {
      exact.value = isLog ? String(Number((10 ** Number(slider.value)).toPrecision(2))) : slider.value;
      update();
    });
    exact.addEventListener("input", follow);
    for (const id of ids.costs) get(id).addEventListener("input", update);
    get(ids.button).addEventListener("click", () => { exact.value = String(counts.cheapest(costOf)); follow(); });
    update();
  }

  function mover(figure, marker, highest = 1) { // moves a marker on a figure that says where its axes end
    const [left, right, bottom, top] = get(figure).dataset.ends.split(" ").map(Number);
    return (x, y) => {
      const at = left + x * (right - left);
      get(marker).setAttribute("cx", at.toFixed(1));
      get(marker).setAttribute("cy", (bottom + Math.min(y / highest, 1) * (top - bottom)).toFixed(1));
      return [at, bottom, top];
    };
  }

  function rejectTool() {
    const n = data.reject.n, move = mover("risk", "risk-marker", Number(get("risk").dataset.ends.split(" ")[4]));
    const costOf = (rows, wrong) => wrong * positive(get("cost-error")) + (n - rows) * positive(get("cost-rejection"));
    const ids = { slider: "threshold", exact: "exact", costs: ["cost-error", "cost-rejection"], button: "cheapest" };
    tool(data.reject, ids, costOf, (threshold, rows, wrong) => {
      const cost = costOf(rows, wrong), coverage = share(rows, n), risk = share(wrong, rows);
      put({ coverage, "risk-kept": risk, mistakes: thousands(wrong), rejected: thousands(n - rows) });
      put({ cost: number(cost / n), "cost-all": amount(cost) });
      put({ decision: `${thousands(rows)} of ${thousands(n)} rows are kept, ${thousands(wrong)} of them wrong.` });
      const [at, bottom, top] = move(rows / n, rows ? wrong / rows : 0);
      get("risk-guide").setAttribute("d", `M${at.toFixed(1)} ${bottom}V${top}`);
      return `${threshold.toFixed(3)}: ${coverage} kept, ${risk} of them wrong`;
    });
  }

  function cutTool() {
    const n = data.cut.n, known = data.cut.positive, none = () => {};
    const moveRoc = get("roc") ? mover("roc", "roc-marker") : none;
    const highest = get("roc") && Number(get("precision-recall").dataset.ends.split(" ")[4]);
    const moveRecall = get("roc") ? mover("precision-recall", "recall-marker", highest) : none;
    const costOf = (rows, hits) => (rows - hits) * positive(get("cost-alarm")) + (known - hits) * positive(get("cost-miss"));
    const ids = { slider: "cut", exact: "cut-exact", costs: ["cost-alarm", "cost-miss"], button: "cut-cheapest" };
    tool(data.cut, ids, costOf, (threshold, rows, hits) => {
      const alarms = rows - hits, missed = known - hits, right = n - known - alarms, cost = costOf(rows, hits);
      put({ "cut-n-hits": thousands(hits), "cut-n-missed": thousands(missed) });
      put({ "cut-n-alarms": thousands(alarms), "cut-n-right": thousands(right) });
      const recall = share(hits, known), precision = share(hits, rows);
      put({ "cut-recall": recall, "cut-precision": precision, "cut-alarms": share(alarms, n - known) });
      put({ "cut-flagged": thousands(rows), "cut-cost": number(cost / n), "cut-cost-all": amount(cost) });
      const alarm = positive(get("cost-alarm")), miss = positive(get("cost-miss"));
      put({ "cut-best": alarm + miss ? number(alarm / (alarm + miss)) : "–" });
      put({ "cut-said": `${thousands(rows)} of ${thousands(n)} rows are flagged, ${thousands(hits)} of them ${data.cut.name}.` });
      moveRoc(n - known ? alarms / (n - known) : 0, known ? hits / known : 0);
      moveRecall(known ? hits / known : 0, rows ? hits / rows : 1);
      return `${Number(threshold.toPrecision(3))}: recall ${recall}, precision ${precision}`;
    });
  }

  const choice = get("class");
  function mark() {
    for (const line of document.querySelectorAll("[data-class]")) {
      const own = line.dataset.class === choice.value;
      line.classList.toggle("chosen", own);
      if (own) line.parentNode.append(line); // draw it last, so that it is on top
    }
    get("class-numbers").textContent = data.classes[Number(choice.value)];
  }

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


  function cue() { // say so where a table has more columns than fit
    for (const box of document.querySelectorAll(".scroll")) {
      box.nextElementSibling.hidden = box.scrollWidth <= box.clientWidth + 1;
    }
  }
  cue();
  addEventListener("resize", cue);

  if (get("threshold")) rejectTool();
  if (get("cut")) cutTool();
  if (choice) {
    choice.addEventListener("change", mark);
    mark();
  }
})();
