// The page's texts, in the language of the browser: one file for each, English where there is none.

const LANGUAGES = ['en', 'de', 'fr'];

export const language = (navigator.languages ?? [navigator.language])
  .map(tag => tag.toLowerCase().split('-')[0]).find(tag => LANGUAGES.includes(tag)) ?? 'en';
export const {default: texts} = await import(`./${language}.js`);

export const number = (value, digits) => value.toFixed(digits).replace('.', texts.decimal);

// The studio speaks English; what a language knows of it is said in that, with the same words in it.
function translated(text) {
  for (const [pattern, said] of texts.studio) {
    if (pattern.test(text)) return text.replace(pattern, said);
  }
  return text;
}

export function sentence(text) {
  const trimmed = translated(String(text).trim());
  const upper = trimmed.charAt(0).toUpperCase() + trimmed.slice(1);
  return /[.!?]$/.test(upper) ? upper : `${upper}.`;
}

// A sentence, and what there is to warn of.
export const sentences = (first, warnings) => [first, ...warnings.map(sentence)].join(' ');

// Texts of elements that are there from the start, by their attributes data-text and data-label.
export function fillIn() {
  document.documentElement.lang = language;
  /** @type {(attribute: string) => NodeListOf<HTMLInputElement>} */
  const all = attribute => document.querySelectorAll(`[data-${attribute}]`);
  for (const place of all('text')) place.textContent = texts[place.dataset.text];
  for (const place of all('label')) place.setAttribute('aria-label', texts[place.dataset.label]);
  for (const place of all('example')) place.placeholder = texts[place.dataset.example];
}
