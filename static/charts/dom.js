// Small helpers: touch the page only where something has changed.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setAttribute(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

export function make(tag, className = "", text = "") {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text) element.textContent = text;
  return element;
}

/** As many children as there are items; `fill(child, item)` writes one. */
export function fillList(parent, items, create, fill) {
  while (parent.children.length > items.length) parent.lastElementChild.remove();
  items.forEach((item, index) => fill(parent.children[index] ?? parent.appendChild(create()), item, index));
}
