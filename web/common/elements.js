// What the pages of snug share: elements made of text, and buttons of a view.

// A new element with a class and text; text is never markup.
function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

// A square of a colour of the page, by its name.
function swatch(name) {
  const made = element("span", "swatch");
  made.style.background = `var(--${name})`;
  return made;
}

function addButtons(name, view) {
  const box = document.querySelector(`.buttons[data-for="${name}"]`);
  for (const [text, label, action] of [["−", "Zoom out", () => view.zoomBy(1 / 1.5)], ["+", "Zoom in", () => view.zoomBy(1.5)],
    ["whole", "Show everything", () => view.reset()]]) {
    const button = element("button", "", text);
    button.type = "button";
    button.setAttribute("aria-label", label);
    button.addEventListener("click", action);
    box.append(button);
  }
}
