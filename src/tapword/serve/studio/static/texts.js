// The page's texts, in the language of the browser: one file per language, English by default.

const LANGUAGES = ['en', 'de', 'fr'];

const languageOf = tag => tag.toLowerCase().split('-')[0];

// As the browser has it, such as en-GB, for times; and the language of the texts.
export const locale = (navigator.languages ?? [navigator.language])
  .find(tag => LANGUAGES.includes(languageOf(tag))) ?? 'en';
export const language = languageOf(locale);
export const {default: texts} = await import(`./${language}.js`);

export const number = (value, digits) => value.toFixed(digits).replace('.', texts.decimal);

// Put parameters into a template: {seconds} is the parameter of that name.
const fill = (template, params = {}) => template.replace(/\{(\w+)\}/g, (_, name) => {
  const value = params[name];
  return typeof value === 'number' ? number(value, Number.isInteger(value) ? 0 : 1) : value;
});

// Text of a problem with a clip.
export const issueText = ({code, params}) => fill(texts.issues[code], params);

// Text of an error; the studio's English message where the languages have no text for it.
export function errorText({error, code = null, params = {}}) {
  const template = texts.errors[code];
  return template ? fill(template, params) : sentence(error);
}

// A name of a file keeps its first letter.
function sentence(text) {
  const named = /^\S*[.\\/_\d]\S/.test(text);
  const upper = named ? text : text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(upper) ? upper : `${upper}.`;
}

// A text, followed by those of issues.
export const withIssues = (text, issues) => [text, ...issues.map(issueText)].filter(Boolean).join(' ');

// Put texts into elements by their attributes data-text, data-label and data-example.
export function fillIn() {
  document.documentElement.lang = language;
  /** @type {(attribute: string) => NodeListOf<HTMLInputElement>} */
  const all = attribute => document.querySelectorAll(`[data-${attribute}]`);
  for (const place of all('text')) place.textContent = texts[place.dataset.text];
  for (const place of all('label')) place.setAttribute('aria-label', texts[place.dataset.label]);
  for (const place of all('example')) place.placeholder = texts[place.dataset.example];
}
