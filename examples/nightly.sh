#!/bin/sh
# A nightly job for any CI system: runs backends, reports, compares with the night before, keeps the history, makes a
# site. docs/nightly.md explains it; all settings are environment variables:
#
#   OPCONFORM_BACKENDS     the backends, one per line, if not given as arguments
#   OPCONFORM_OUT          the output folder                                            [opconform-nightly]
#   OPCONFORM_NIGHT        the name of this night; the same name resumes it             [today, in UTC]
#   OPCONFORM_SHARDS       the number of shards of each run                             [1]
#   OPCONFORM_SHARD        only this shard, for jobs that split a night                 [all]
#   OPCONFORM_RUN_OPTIONS  more options of `opconform run`, separated by blanks
#   OPCONFORM_HISTORY      the history's database                                       [OUT/history.duckdb]
#   OPCONFORM_PREVIOUS     what to compare with: a results folder, or HISTORY:RUN       [the history's last run]
#   OPCONFORM_FAIL_ON      what exits 1: regression, change, failure, never             [regression]
#   OPCONFORM_STEPS        the steps to take: run report compare history site           [all]
#   OPCONFORM              the command                                                  [opconform]
#
# Exits 0, or 1 for what OPCONFORM_FAIL_ON names, 2 for wrong usage, 3 if a backend could not be run or opconform
# failed, 130 if interrupted: the highest wins. A backend that fails costs only its own results.
set -uf

opconform=${OPCONFORM:-opconform}
out=${OPCONFORM_OUT:-opconform-nightly}
night=$out/${OPCONFORM_NIGHT:-$(date -u +%Y-%m-%d)}
shards=${OPCONFORM_SHARDS:-1}
history=${OPCONFORM_HISTORY:-$out/history.duckdb}
fail_on=${OPCONFORM_FAIL_ON:-regression}
steps=" ${OPCONFORM_STEPS:-run report compare history site} "
code=0
partial=

say() { printf '== %s\n' "$*"; }
wrong() { printf 'nightly: %s\n' "$*" >&2; exit 2; }
worst() { if [ "$1" -gt "$code" ]; then code=$1; fi; }
wanted() { case $steps in *" $1 "*) ;; *) return 1 ;; esac; }

# The folder name for a backend: unchanged, or with characters that a file name cannot have replaced, and a checksum.
folder_of() {
  plain=$(printf '%s' "$1" | tr -c 'A-Za-z0-9._-' '-')
  [ "$plain" = "$1" ] || plain=$plain-$(printf '%s' "$1" | cksum | cut -d ' ' -f 1)
  printf '%s' "$plain"
}

# The line of a log with the run's verdict, or the last one if the run did not get that far.
verdict() {
  grep -E -m 1 '(conformant|success|report it|kept): ' "$1" || tail -n 1 "$1"
}

# Run one shard of one backend, or go on with it; whatever happens is told, and the next one runs.
run_shard() {
  backend=$1 shard=$2
  folder=$night/results/$(folder_of "$backend").shard-$shard-of-$shards
  log=$folder.log
  if [ -f "$folder/run.json" ]; then
    set -- --resume "$folder" "$backend"
  else
    set -- "$backend" --out "$folder"
    [ "$shards" -eq 1 ] || set -- "$@" --shard "$shard/$shards"
  fi
  # shellcheck disable=SC2086 # words on purpose, and -f above leaves globs to opconform
  set -- "$@" ${OPCONFORM_RUN_OPTIONS:-}
  status=0
  $opconform run "$@" --quiet > "$log" 2>&1 || status=$?
  say "$backend, shard $shard of $shards: exit $status: $(verdict "$log")"
  case $status in
    0 | 1) ;;
    130) exit 130 ;;
    *) worst 3; partial=--partial; [ -f "$folder/run.json" ] || say "$backend: left out, see $log" ;;
  esac
}

run_all() {
  for backend in "$@"; do
    shard=${OPCONFORM_SHARD:-1}
    while [ "$shard" -le "${OPCONFORM_SHARD:-$shards}" ]; do
      run_shard "$backend" "$shard"
      shard=$((shard + 1))
    done
  done
}

# The figures as text, JUnit, Markdown, JSON and badges.
report() {
  status=0
  # shellcheck disable=SC2086 # nothing, or one word
  $opconform report "$@" $partial --junit "$night/junit.xml" --markdown "$night/summary.md" \
    --json "$night/report.json" --badge "$night/badges" > "$night/report.txt" || status=$?
  tail -n 2 "$night/report.txt"
  case $status in
    0) ;;
    1) if [ "$fail_on" = failure ]; then worst 1; fi ;;
    *) worst 3 ;;
  esac
}

# What changed since the last run that the history has, or since OPCONFORM_PREVIOUS. To be asked before this night is
# in the history; if it is, the answer of then is kept.
compare() {
  if [ -f "$night/added" ]; then
    worst "$(cat "$night/changed" 2> /dev/null || echo 0)"
    return
  fi
  previous=${OPCONFORM_PREVIOUS:-}
  if [ -z "$previous" ]; then
    [ -f "$history" ] || { say "the first night: nothing to compare with"; return; }
    previous=$history:last
  fi
  # A run that is compared has one folder, or a folder of folders.
  set -- "$previous" "$night/results" --markdown "$night/changes.md" --json "$night/changes.json"
  case $fail_on in regression | change) set -- "$@" --fail-on "$fail_on" ;; esac
  status=0
  # shellcheck disable=SC2086
  $opconform compare "$@" $partial > "$night/changes.txt" || status=$?
  cat "$night/changes.txt"
  [ "$status" -le 1 ] || status=3
  echo "$status" > "$night/changed"
  worst "$status"
}

add_to_history() {
  # shellcheck disable=SC2086
  if $opconform history add "$@" $partial --db "$history" --label "${night##*/}"; then
    : > "$night/added"
  else
    worst 3
  fi
}

site() {
  if [ -f "$history" ]; then set -- "$@" --history "$history"; fi
  status=0
  # shellcheck disable=SC2086
  $opconform report "$@" $partial --html "$out/site" > "$night/site.txt" || status=$?
  [ "$status" -le 1 ] || { worst 3; tail -n 3 "$night/site.txt"; }
}

case $shards in *[!0-9]* | 0 | '') wrong "OPCONFORM_SHARDS: $shards is no number of shards" ;; esac
case ${OPCONFORM_SHARD:-1} in *[!0-9]* | 0) wrong "OPCONFORM_SHARD: $OPCONFORM_SHARD is no number" ;; esac
case $fail_on in
  regression | change | failure | never) ;;
  *) wrong "OPCONFORM_FAIL_ON: $fail_on is not regression, change, failure or never" ;;
esac
for step in $steps; do
  case $step in run | report | compare | history | site) ;; *) wrong "OPCONFORM_STEPS: there is no $step" ;; esac
done
mkdir -p "$night/results" || wrong "$night: cannot be made"

if wanted run; then
  if [ $# -eq 0 ]; then # one a line
    newline='
'
    IFS=$newline
    # shellcheck disable=SC2086
    set -- ${OPCONFORM_BACKENDS:-}
    unset IFS
  fi
  [ $# -gt 0 ] || wrong "name the backends, as arguments or in OPCONFORM_BACKENDS"
  run_all "$@"
fi

set +f --
for folder in "$night"/results/*; do
  if [ -f "$folder/run.json" ]; then set -- "$@" "$folder"; fi
done
set -f
if wanted report || wanted compare || wanted history || wanted site; then
  [ $# -gt 0 ] || { say "no results in $night/results"; worst 3; exit "$code"; }
fi
if wanted report; then report "$@"; fi
if wanted compare; then compare; fi
if wanted history; then add_to_history "$@"; fi
if wanted site; then site "$@"; fi
say "exit $code"
exit "$code"
