// A number as text, so many steps further: 3 → 4, 0.25 → 0.26, 1/3 → 4/3. Nothing for what is no such number.

export function stepped(text, steps, fine = false) {
  const plain = text.trim().replace("−", "-").replace(/^([+-]?\d+),(\d+)$/, "$1.$2");
  const ratio = /^([+-]?\d{1,12})\/(\d{1,12})$/.exec(plain);
  if (ratio) return `${Number(ratio[1]) + steps * Number(ratio[2])}/${ratio[2]}`;
  const decimal = /^[+-]?(\d{0,12})(?:\.(\d{0,10}))?$/.exec(plain);
  if (!decimal || !/\d/.test(plain)) return null;
  const places = Math.max((decimal[2] ?? "").length, fine ? 1 : 0);
  const unit = decimal[2] || fine ? 10 ** -places : 1;
  const found = (Number(plain) + steps * unit).toFixed(places);
  return Number(found) === 0 ? (0).toFixed(places) : found;
}
