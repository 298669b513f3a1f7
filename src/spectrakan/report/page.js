// Tables with a head become sortable by a press on a column's name; without this script they are plain tables.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const number = (cell) => (cell.dataset.value === undefined ? NaN : parseFloat(cell.dataset.value));
  const counts = (column) => [...body.rows].some((row) => !isNaN(number(row.cells[column])));
  const order = (column, sign, numeric) => (one, other) => {
    const a = number(one.cells[column]), b = number(other.cells[column]);
    if (!isNaN(a) && !isNaN(b)) return sign * (a - b);
    // What has no number stands last in both directions, in the order it came.
    if (isNaN(a) !== isNaN(b)) return isNaN(a) ? 1 : -1;
    if (numeric) return 0;
    return sign * one.cells[column].textContent.localeCompare(other.cells[column].textContent);
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      body.append(...[...body.rows].sort(order(column, up ? 1 : -1, counts(column))));
    });
  });
}
