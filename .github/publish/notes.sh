#!/usr/bin/env bash
# Reads CHANGELOG.md on stdin and writes the section of the version $1: the notes of its release.
set -euo pipefail

notes=$(awk -v version="$1" '/^## / { inside = index($0, "## [" version "]") == 1; next } inside')
if [ -z "${notes//[[:space:]]/}" ]; then
  echo "CHANGELOG.md: has nothing under '## [$1]'" >&2
  exit 2
fi
printf '%s\n' "$notes"
