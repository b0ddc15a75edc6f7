// onnxruntime-web under Node.js as a backend over the process protocol: its WebAssembly kernels, one thread.
//
//   npm install onnxruntime-web
//   opconform run 'cmd:node onnxruntime_web.mjs' --select 'onnx/ReduceMean-*'
//
// Node.js looks for packages in this file's folder and its parents. docs/process-protocol.md explains the fields.

import { closeSync, ftruncateSync, openSync, readFileSync, readSync, writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import * as ort from 'onnxruntime-web';

for (const name of ['log', 'info', 'debug']) console[name] = console.error; // stdout is only for answers
ort.env.wasm.numThreads = 1;
ort.env.logLevel = 'fatal';

// Messages that only say "not implemented": of the library (9 is ORT_NOT_IMPLEMENTED), and of its JavaScript.
const UNSUPPORTED = [
  [/Unsupported model IR version|Current official support for domain \S+ is till/, 'operator-version'],
  [/No Op registered for|is not a registered function\/op/, 'operator-version'],
  [/unsupported (data )?type: /, 'type'],
  [/data type is not supported with|Unsupported value attribute datatype|Invalid tensor data type/, 'type'],
  [/operator does not support \S+ yet/, 'type'],
  [/mode only supports:/, 'shape'],
  [/Unsupported pooling size|Unsupported kernel dimension/, 'rank'],
  [/Dilation not supported for|are not supported. If you need support create a github issue/, 'attribute'],
  [/ERROR_CODE: 9,/, 'other'],
];
const OF_A_TYPE = { float32: Float32Array, float64: Float64Array, int8: Int8Array, int16: Int16Array, int32: Int32Array,
  int64: BigInt64Array, uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array,
  bool: Uint8Array, int4: Uint8Array, uint4: Uint8Array,
  float16: globalThis.Float16Array ?? Uint16Array }; // only newer releases of Node.js have the former

const prepared = new Map(); // sessions by the id of the question

class Unsupported extends Error {
  constructor(words, reason) {
    super(words);
    this.reason = reason;
  }
}

function shared(path, { offset, length }) {
  const bytes = new Uint8Array(length);
  const file = openSync(path, 'r');
  for (let at = 0; at < length; ) at += readSync(file, bytes, at, length - at, offset + at) || length;
  closeSync(file);
  return bytes;
}

function tensorOf({ type, shape, content }, files) {
  if (type === 'string') return new ort.Tensor('string', content, shape);
  const array = OF_A_TYPE[type];
  if (!array) throw new Unsupported(`onnxruntime-web has no tensors of ${type}`, 'type');
  const bytes = typeof content === 'string' ? new Uint8Array(Buffer.from(content, 'base64')) : shared(files.read, content);
  return new ort.Tensor(type, new array(bytes.buffer, 0, bytes.length / array.BYTES_PER_ELEMENT), shape);
}

function told({ type, dims, data }, out) {
  if (type === 'string') return { type, shape: dims, content: data };
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  if (!out.path || bytes.length < 65536) return { type, shape: dims, content: bytes.toString('base64') };
  out.file ??= openSync(out.path, 'r+');
  for (let at = 0; at < bytes.length; ) at += writeSync(out.file, bytes, at, bytes.length - at, out.length + at);
  out.length += bytes.length;
  return { type, shape: dims, content: { offset: out.length - bytes.length, length: bytes.length } };
}

async function prepare({ id, program, model, drop }) {
  for (const gone of drop ?? []) {
    await prepared.get(gone)?.release();
    prepared.delete(gone);
  }
  const ends = [...program.inputs, ...program.outputs, ...(program.captured ?? [])];
  const other = ends.find((one) => one?.type.includes('('));
  if (other) throw new Unsupported(`onnxruntime-web gives and takes tensors alone, and no ${other.type}`, 'type');
  const options = { executionProviders: ['wasm'], graphOptimizationLevel: 'all', logSeverityLevel: 4 };
  prepared.set(id, await ort.InferenceSession.create(new Uint8Array(Buffer.from(model, 'base64')), options));
  return { answer: 'prepared' };
}

async function run({ program, inputs, files }) {
  const session = prepared.get(program);
  const { inputNames, outputNames } = session;
  const given = inputs.map((input, place) => [inputNames[place], tensorOf(input, files)]);
  const found = await session.run(Object.fromEntries(given));
  const out = { path: files?.write, length: 0 };
  const outputs = outputNames.map((name) => told(found[name], out));
  if (out.file !== undefined) closeSync(out.file);
  return { answer: 'outputs', outputs };
}

function hello() {
  const beside = createRequire(import.meta.url).resolve('onnxruntime-web');
  const { version } = JSON.parse(readFileSync(beside.replace(/dist[\\/][^\\/]*$/, 'package.json'), 'utf8'));
  const facts = { provider: 'wasm', threads: '1', node: process.version };
  return { answer: 'hello', protocol: 1, name: 'onnxruntime-web', version, standards: ['onnx'], facts, files: true };
}

function refusal(error) {
  // After a trap the module cannot continue: this is a crash, and the next program gets a new module.
  if (error instanceof WebAssembly.RuntimeError) throw error;
  const words = String(error?.message ?? error);
  const known = error instanceof Unsupported ? [null, error.reason] : UNSUPPORTED.find(([pattern]) => pattern.test(words));
  return known ? { answer: 'unsupported', words, reason: known[1] } : { answer: 'error', words };
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const question = JSON.parse(line);
  const answer = await Promise.resolve({ hello, prepare, run }[question.ask](question)).catch(refusal);
  process.stdout.write(JSON.stringify({ id: question.id, ...answer }) + '\n');
}
process.exit(0); // threads of WebAssembly would keep the process alive
