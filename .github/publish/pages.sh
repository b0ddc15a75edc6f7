#!/usr/bin/env bash
# Makes the pages of a release in the folder $1, with the commands of $2, an environment that has opconform, onnxruntime
# and MkDocs: docs/, the documentation; results/, the site of a run of the backends that need nothing else. What follows
# is given to that run, so that it can be a small one.
set -euo pipefail

out=$1 bin=$2
shift 2
mkdir -p "$out"
"$bin/mkdocs" build --strict --quiet --site-dir "$(realpath "$out")/docs"
status=0
"$bin/opconform" run onnxruntime onnx-reference --quiet --out "$out/run" "$@" > /dev/null || status=$?
[ "$status" -le 1 ] || exit "$status" # a backend that does not conform is what the pages show
"$bin/opconform" report "$out/run" --html "$out/results" --badge "$out/results/badges" > /dev/null || [ $? -eq 1 ]
rm -r "$out/run"
