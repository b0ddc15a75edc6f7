#!/usr/bin/env bash
# Reads README.md on stdin and writes the long description of a package, which has no files beside it: links lead to
# the repository at the URL $2, at the tag of the version $1. Without a URL, pictures are left out, and links are their
# text alone.
set -euo pipefail

relative='[^]():#[:space:]][^]():[:space:]]*'
if [ -n "${2:-}" ]; then
  pictures="s|(!\[[^]]*\]\()($relative\))|\1$2/raw/v$1/\2|g"
  links="s|(\]\()($relative\))|\1$2/blob/v$1/\2|g"
else
  pictures="s|!\[[^]]*\]\($relative\)||g"
  links="s|\[([^]]*)\]\($relative\)|\1|g"
fi
sed -E -e "$pictures" -e "$links"
