// SPDX-License-Identifier: Apache-2.0
// An estimate of how many guesses a passphrase needs. It knows common words, keyboard rows,
// repetitions, sequences and years, and counts the rest by the alphabet used. Rather low than high:
// Argon2id allows a strong attacker some 10,000 guesses a second.

const common = ('password passwort 123456 qwerty qwertz letmein iloveyou welcome admin dragon monkey sunshine ' +
  'princess football baseball master hello hallo freedom whatever shadow michael charlie secret geheim schatz ' +
  'login starwars trustno1 superman batman summer winter sommer test nacre linux debian computer internet ' +
  'family familie flower berlin london hamburg munich muenchen love liebe correct horse battery staple').split(' ');
const rows = ['qwertyuiop', 'qwertzuiop', 'asdfghjkl', 'zxcvbnm', 'yxcvbnm', 'abcdefghijklmnopqrstuvwxyz', '01234567890'];
const guessesPerSecond = 1e4;
const plain = (text) => text.toLowerCase().replace(/[@4]/g, 'a').replace(/[3]/g, 'e').replace(/[1!]/g, 'i')
  .replace(/0/g, 'o').replace(/[$5]/g, 's');

// Bits of the patterned piece that begins here, and its length; or null.
function pattern(text, lower, leet, at) {
  for (const word of common) {
    if (lower.startsWith(word, at) || leet.startsWith(word, at)) return { length: word.length, bits: 7 };
  }
  const year = /^(19|20)\d\d/.exec(text.slice(at));
  if (year) return { length: 4, bits: 7 };
  let repeated = 1;
  while (text[at + repeated] === text[at]) repeated += 1;
  if (repeated >= 3) return { length: repeated, bits: 5 + Math.log2(repeated) };
  for (const row of rows) {
    for (const order of [row, [...row].reverse().join('')]) {
      let length = 0;
      const from = order.indexOf(lower[at]);
      while (from >= 0 && lower[at + length] && order[from + length] === lower[at + length]) length += 1;
      if (length >= 3) return { length, bits: 5 + Math.log2(length) };
    }
  }
  const letters = /^\p{L}{3,}/u.exec(text.slice(at));
  // A run of letters may be a word of a language, one of some 8,000, with a capital at times.
  if (letters) return { length: letters[0].length, bits: Math.min(13, letters[0].length * 4.7), isWord: true };
  return null;
}

export function bitsOf(text) {
  const lower = text.toLowerCase();
  const leet = plain(text);
  let bits = 0;
  const seen = new Set();
  for (let at = 0; at < text.length;) {
    const found = pattern(text, lower, leet, at);
    if (found) {
      const piece = lower.slice(at, at + found.length);
      // Long runs of letters that are no word: judged as random letters, in part.
      const bonus = found.isWord && found.length > 9 ? (found.length - 9) * 2.3 : 0;
      bits += seen.has(piece) ? 1 : found.bits + bonus;
      seen.add(piece);
      at += found.length;
      continue;
    }
    const character = text[at];
    bits += /\d/.test(character) ? 3.3 : /\s|[-_.,]/.test(character) ? 1.5 : /[a-z]/.test(character) ? 4 : 5.5;
    at += 1;
  }
  return bits;
}

const spans = [[60, 'seconds'], [3600, 'minutes', 60], [86400, 'hours', 3600], [86400 * 60, 'days', 86400],
  [86400 * 730, 'months', 86400 * 30], [86400 * 365e3, 'years', 86400 * 365], [Infinity, 'ages']];

// level 0 (very weak) to 4 (strong); share for a bar; the time that guessing takes on average.
export function strength(text) {
  const bits = bitsOf(text);
  const seconds = 2 ** (bits - 1) / guessesPerSecond;
  const level = bits < 26 ? 0 : bits < 36 ? 1 : bits < 48 ? 2 : bits < 64 ? 3 : 4;
  const [, name, unit = 1] = spans.find(([limit]) => seconds < limit);
  return { bits, level, share: Math.min(1, bits / 80), time: { key: `time.${name}`, n: Math.round(seconds / unit) } };
}
