"use strict";
/* Elements of tensors from their bits: the shortest decimal that means them, the exact one, and the hexadecimal one. */
(function () {
  const FLOATS = { float16: [11, -14], bfloat16: [8, -126], float32: [24, -126], float64: [53, -1022] };
  const SIZES = { float16: 2, bfloat16: 2, float32: 4, float64: 8, int8: 1, uint8: 1, int16: 2, uint16: 2, int32: 4,
    uint32: 4, int64: 8, uint64: 8, bool: 1 };
  const LONGEST = 160;  // digits of an exact decimal that are shown

  const half = (bits) => {
    const sign = bits & 0x8000 ? -1 : 1, exponent = bits >> 10 & 31, fraction = bits & 1023;
    if (exponent === 31) { return fraction ? NaN : sign * Infinity; }
    return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24);
  };
  const bfloat = (bits) => {
    const view = new DataView(new ArrayBuffer(4));
    view.setUint32(0, bits << 16 >>> 0);
    return view.getFloat32(0);
  };
  const READ = {
    float16: (view, at) => half(view.getUint16(at, true)),
    bfloat16: (view, at) => bfloat(view.getUint16(at, true)),
    float32: (view, at) => view.getFloat32(at, true), float64: (view, at) => view.getFloat64(at, true),
    int8: (view, at) => BigInt(view.getInt8(at)), uint8: (view, at) => BigInt(view.getUint8(at)),
    int16: (view, at) => BigInt(view.getInt16(at, true)), uint16: (view, at) => BigInt(view.getUint16(at, true)),
    int32: (view, at) => BigInt(view.getInt32(at, true)), uint32: (view, at) => BigInt(view.getUint32(at, true)),
    int64: (view, at) => view.getBigInt64(at, true), uint64: (view, at) => view.getBigUint64(at, true),
    bool: (view, at) => view.getUint8(at) !== 0,
  };

  /* The elements of a tensor of this type from base64 of their bytes; those of other types come as a list of texts. */
  function elements(type, base64) {
    if (Array.isArray(base64)) { return base64; }
    if (!READ[type] || base64 === null) { return null; }
    const content = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    const view = new DataView(content.buffer), size = SIZES[type];
    return Array.from({ length: content.length / size }, (_, place) => READ[type](view, place * size));
  }

  function rounded(type, x) {  // to nearest, ties to even
    if (type === "float32") { return Math.fround(x); }
    const [precision, lowest] = FLOATS[type];
    if (type === "float64" || x === 0 || !Number.isFinite(x)) { return x; }
    let exponent = Math.floor(Math.log2(Math.abs(x)));
    if (2 ** exponent > Math.abs(x)) { exponent -= 1; }
    const unit = 2 ** (Math.max(exponent, lowest) - precision + 1), scaled = x / unit, down = Math.floor(scaled);
    const rest = scaled - down;
    return (rest > 0.5 || (rest === 0.5 && down % 2 !== 0) ? down + 1 : down) * unit;
  }

  function special(value) {
    if (Number.isNaN(value)) { return "nan"; }
    if (!Number.isFinite(value)) { return value > 0 ? "inf" : "-inf"; }
    return Object.is(value, -0) ? "-0.0" : null;
  }

  function shortest(type, value) {
    if (typeof value !== "number") { return String(value); }
    const named = special(value);
    if (named !== null) { return named; }
    if (!(type in FLOATS) || type === "float64" || Number.isSafeInteger(value)) { return String(value); }
    for (let digits = 1; digits < 17; digits++) {
      const text = value.toPrecision(digits);
      if (rounded(type, Number(text)) === value) { return String(Number(text)); }
    }
    return String(value);
  }

  function split(value) {  // value = mantissa · 2^exponent
    const view = new DataView(new ArrayBuffer(8));
    view.setFloat64(0, Math.abs(value));
    const bits = view.getBigUint64(0), field = Number(bits >> 52n), fraction = bits & 0xfffffffffffffn;
    return field ? [fraction | 1n << 52n, field - 1075] : [fraction, -1074];
  }

  function exact(value) {
    if (typeof value !== "number") { return String(value); }
    const named = special(value);
    if (named !== null) { return named; }
    if (value === 0) { return "0"; }
    let [mantissa, exponent] = split(value);
    while (exponent < 0 && !(mantissa & 1n)) { mantissa >>= 1n; exponent += 1; }
    const sign = value < 0 ? "-" : "";
    if (exponent >= 0) { return sign + cut(String(mantissa << BigInt(exponent))); }
    const digits = String(mantissa * 5n ** BigInt(-exponent)).padStart(1 - exponent, "0");
    return `${sign}${digits.slice(0, exponent)}.${cut(digits.slice(exponent))}`;
  }

  const cut = (digits) => (digits.length > LONGEST
    ? `${digits.slice(0, LONGEST)}… (${digits.length} digits)` : digits);

  function hexadecimal(value) {
    if (typeof value === "bigint") { return `${value < 0n ? "-" : ""}0x${(value < 0n ? -value : value).toString(16)}`; }
    if (typeof value !== "number") { return String(value); }
    const named = special(value);
    if (named !== null && named !== "-0.0") { return named; }
    const sign = value < 0 || Object.is(value, -0) ? "-" : "";
    if (value === 0) { return `${sign}0x0.0p+0`; }
    let [mantissa, exponent] = split(value);
    while (!(mantissa >> 52n)) { mantissa <<= 1n; exponent -= 1; }  // a subnormal number of float64
    const fraction = (mantissa & 0xfffffffffffffn).toString(16).padStart(13, "0").replace(/0+$/, "") || "0";
    exponent += 52;
    return `${sign}0x1.${fraction}p${exponent < 0 ? "" : "+"}${exponent}`;
  }

  /* An element as a text in the notation that is asked for. */
  function text(type, value, notation) {
    if (notation === "exact") { return exact(value); }
    return notation === "hex" ? hexadecimal(value) : shortest(type, value);
  }

  window.opconformNumbers = { elements, text, shortest, exact, hexadecimal, isFloat: (type) => type in FLOATS };
})();
