#!/usr/bin/env bash
# Puts files and folders on a branch of `origin`, in place of what is there under the same paths, as one commit that has
# no past: databases and pages of which every version were kept would fill the repository.
#
#   branch.sh BRANCH MESSAGE PATH=SOURCE…
#
# With `pages` as the branch, versions.json lists the folders that are versions of the documentation, newest first, as
# MkDocs's theme reads it, `latest/` leads to the newest of them, and the first page does. Runs in a checkout that may push.
set -euo pipefail

branch=$1 message=$2
shift 2
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
# A branch that is not there is the first time; one that cannot be asked for ends this, and stays as it is.
there=$(git ls-remote origin "refs/heads/$branch")
if [ -n "$there" ]; then
  git fetch --quiet --depth 1 origin "$branch"
  git archive FETCH_HEAD | tar -x -C "$tree"
fi
for pair in "$@"; do
  to=$tree/${pair%%=*}
  rm -rf "$to"
  mkdir -p "$(dirname "$to")"
  cp -r "${pair#*=}" "$to"
done
if [ "$branch" = pages ]; then
  python3 - "$tree" << 'PYTHON'
import json, re, sys
from pathlib import Path

tree = Path(sys.argv[1])
found = [folder.name for folder in tree.iterdir() if re.fullmatch(r"\d+\.\d+\.\d+", folder.name)]
found.sort(key=lambda name: [int(part) for part in name.split(".")], reverse=True)
listed = [{"version": name, "title": name, "aliases": []} for name in found]
(tree / "versions.json").write_text(json.dumps(listed) + "\n", encoding="utf-8")
first = f"{found[0]}/" if found else "results/latest/"
moved = '<!doctype html><meta charset="utf-8"><title>opconform</title><meta http-equiv="refresh" content="0; url={0}">'
page = moved + '<a href="{0}">opconform</a>\n'
(tree / "index.html").write_text(page.format(first), encoding="utf-8")
(tree / "latest").mkdir(exist_ok=True)
(tree / "latest" / "index.html").write_text(page.format(f"../{first}"), encoding="utf-8")
(tree / ".nojekyll").touch()
PYTHON
fi
export GIT_INDEX_FILE=$tree.index
git --work-tree "$tree" add --all --force .
written=$(git write-tree)
rm -f "$GIT_INDEX_FILE"
commit=$(git -c user.name=opconform -c user.email=opconform@users.noreply.github.com commit-tree "$written" -m "$message")
# Refused if somebody else wrote to the branch in between.
git push --quiet --force-with-lease="refs/heads/$branch:$(printf '%s' "$there" | cut -f 1)" origin "$commit:refs/heads/$branch"
