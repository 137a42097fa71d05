// Small ways into the page. Whatever comes from a table is set as text, never as markup.
export const at = (id) => document.getElementById(id);
export const text = (id, what) => { at(id).textContent = what ?? ""; };
export const show = (id, is) => { at(id).hidden = !is; };

const fill = (element, attributes, inside) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...inside);
  return element;
};
export const make = (tag, attributes = {}, ...inside) => fill(document.createElement(tag), attributes, inside);
export const draw = (tag, attributes = {}, ...inside) => fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, inside);

export const download = (name, content, type) => {
  const address = URL.createObjectURL(new Blob([content], { type }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
};
