// SPDX-License-Identifier: Apache-2.0
// The page's texts. Each language is one file, texts_LANGUAGE.js, with the same keys. A new language
// needs its file, its import, and an entry in `languages` and `files`. All are loaded at the start:
// a script that is fetched later might come from another server.
import de from './texts_de.js';
import en from './texts_en.js';

export const languages = { en: 'English', de: 'Deutsch' };
const files = { en, de };
let texts = {};
let language = 'en';
export const currentLanguage = () => language;

export function preferredLanguage() {
  const kept = localStorage.getItem('nacre.language');
  if (kept in languages) return kept;
  return navigator.languages.map((tag) => tag.slice(0, 2)).find((tag) => tag in languages) ?? 'en';
}

export function useLanguage(name) {
  texts = files[name];
  language = name;
  document.documentElement.lang = name;
}

// The text of a key with {name} replaced by values.name. With values.n of 1, KEY.one comes first.
export function t(key, values = {}) {
  const text = (values.n === 1 ? texts[`${key}.one`] : undefined) ?? texts[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => {
    const value = values[name];
    if (value === undefined) return whole;
    return typeof value === 'number' ? value.toLocaleString(language) : value;
  });
}

// A text that may lack, such as one for a name that a newer server sends.
export const tOr = (key, fallback) => texts[key] ?? fallback;
