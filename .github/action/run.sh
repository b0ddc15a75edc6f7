#!/usr/bin/env bash
# What the action does: one run, its reports, the outputs of the step. Inputs come as INPUT_… variables, never as text
# within the script, so that none of them is taken for code.
set -uo pipefail

out=$INPUT_OUT
run=("$INPUT_BACKEND" --out "$out/results")
while IFS= read -r glob; do
  [ -z "$glob" ] || run+=(--select "$glob")
done <<< "$INPUT_SELECT"
for name in shard waivers profile arithmetic; do
  variable=INPUT_${name^^}
  [ -z "${!variable}" ] || run+=("--$name" "${!variable}")
done
read -r -d '' -a more <<< "$INPUT_OPTIONS" || true # it ends without the delimiter
run+=("${more[@]}")

status=0
mkdir -p "$out"
opconform run "${run[@]}" --quiet || status=$?

summary=${GITHUB_STEP_SUMMARY:-/dev/null}
if [ -f "$out/results/run.json" ]; then
  # A shard, or a run that was cut short, is told as what it is.
  opconform report "$out/results" --partial --junit "$out/junit.xml" --markdown "$out/summary.md" \
    --json "$out/report.json" --badge "$out/badges" > /dev/null
  [ ! -f "$out/summary.md" ] || cat "$out/summary.md" >> "$summary"
fi

# A figure of the report as a share of 1, nothing where there is none.
figure() {
  [ -f "$out/report.json" ] || return 0
  python3 -c 'import json, sys
found = json.load(open(sys.argv[1], encoding="utf-8"))["figures"]["overall"][sys.argv[2]]
print("" if found is None else found)' "$out/report.json" "$1"
}

# The name of an artifact must not hold what a file's name cannot.
artifact=${INPUT_ARTIFACT:-opconform-$INPUT_BACKEND${INPUT_SHARD:+-$INPUT_SHARD}}
artifact=$(printf '%s' "$artifact" | tr -c 'A-Za-z0-9._-' '-')

{
  echo "exit-code=$status"
  echo "correctness=$(figure correctness)"
  echo "support=$(figure support)"
  echo "results=$out/results"
  echo "artifact=$artifact"
} >> "${GITHUB_OUTPUT:-/dev/stdout}"

case $INPUT_FAIL_ON in
  failure) exit "$status" ;;
  error) [ "$status" -le 1 ] || exit "$status" ;; # a backend that does not conform is a finding, not an error
  never) ;;
  *)
    echo "fail-on: $INPUT_FAIL_ON is not failure, error or never" >&2
    exit 2
    ;;
esac
