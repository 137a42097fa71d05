// A slider over the trade-offs of one model: shows the part of the page that is about the chosen one.
for (const along of document.querySelectorAll(".along")) {
  const slider = along.querySelector("input");
  const parts = along.querySelectorAll("section");
  const show = () => {
    parts.forEach((part, index) => { part.hidden = index !== Number(slider.value); });
    const name = parts[slider.value].dataset.name;
    along.querySelector("output").textContent = name;
    slider.setAttribute("aria-valuetext", name);
  };
  along.classList.add("live");
  slider.addEventListener("input", show);
  show();
}
