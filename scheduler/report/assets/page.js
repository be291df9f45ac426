// The page of a report. The module begins with the charts of plans and of schedules.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent), at = (id) => document.getElementById(id);
  const names = ["jct", "delay", "rho", "used", "waiting"];
  for (const id of ["used", "waiting"]) at(id + "-step").textContent = meanOver(data[id]);
  keepDrawn(() => drawPolicies(Object.fromEntries(names.map((id) => [id, at(id)])), data));
  at("gantt-section").hidden = false;
  if (!drawGantt({canvas: at("gantt"), picks: at("gantt-picks"), about: at("gantt-about"), under: at("gantt-under")}, data)) at("gantt-section").hidden = true;

  // Figures sort by their exact value, undefined ones last; names as text.
  const table = document.getElementById("runs"), heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, c) => head.querySelector("button").addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((h) => h.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows], sign = down ? -1 : 1;
    rows.sort((a, b) => {
      if (c === 0) return sign * a.cells[0].textContent.localeCompare(b.cells[0].textContent);
      const x = a.cells[c].dataset.v, y = b.cells[c].dataset.v;
      if (x === "" || y === "") return (x === "") - (y === "");
      return sign * (x - y);
    });
    table.tBodies[0].append(...rows);
  }));
})();
