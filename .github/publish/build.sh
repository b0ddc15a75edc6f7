#!/usr/bin/env bash
# Builds dist/ from this checkout and checks it; of a tag (REF_TYPE, REF_NAME) it has to be the version. The wheel is
# made from the source distribution, with the tools of requirements.txt and no others, and both are looked at as the
# index does. The long description is README.md with links that lead to the repository (readme.sh); README.md is as it
# was when this ends.
set -euo pipefail

version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' __init__.py)
# The one place that has the repository's address; first_release.py writes it.
url=$(sed -n 's/^Repository = "\(.*\)"$/\1/p' pyproject.toml)
if [ "${REF_TYPE:-}" = tag ]; then
  if [ "${REF_NAME:-}" != "v$version" ]; then
    echo "tag ${REF_NAME:-}: __init__.py says version $version; expected the tag v$version" >&2
    exit 2
  fi
  if [ -z "$url" ]; then
    echo "pyproject.toml: has no [project.urls]; before the first release, run .github/publish/first_release.py" >&2
    exit 2
  fi
  bash .github/publish/notes.sh "$version" < CHANGELOG.md > /dev/null
fi

work=$(mktemp -d)
cp README.md "$work/README.md"
trap 'cp "$work/README.md" README.md; rm -rf "$work"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1

python3 -m venv "$work/tools"
"$work/tools/bin/pip" install --quiet --require-hashes --requirement .github/publish/requirements.txt
rm -rf dist
bash .github/publish/readme.sh "$version" "$url" < "$work/README.md" > README.md
"$work/tools/bin/python" -m build --no-isolation .
"$work/tools/bin/twine" check --strict dist/*
