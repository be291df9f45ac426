const data = JSON.parse(document.getElementById("data").textContent);
const box = (id) => document.getElementById(id);
keepDrawn(() => [
  ...data.front ? [drawFront(box("front"), data.front)] : [],
  ...data.curve ? [drawCurve(box("curve"), data.curve), drawGain(box("gain"), data.curve)] : [],
]);
