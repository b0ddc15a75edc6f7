#!/usr/bin/env bash
# Fills the folder $1 with the smoke suite as files, in both formats, made by the command $2, and with the digest of
# each. What follows chooses other cases.
set -euo pipefail

out=$1 opconform=$2
shift 2
[ $# -gt 0 ] || set -- --suite smoke
mkdir -p "$out"
for format in onnx npz; do
  "$opconform" export --format "$format" --out "$out/opconform-cases-$format.zip" "$@" | tee "$out/opconform-cases-$format.txt"
done
