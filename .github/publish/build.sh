#!/usr/bin/env bash
# Builds dist/ from this checkout and checks it; of a tag (REF_TYPE, REF_NAME) it has to be the version. The wheel is
# made from the source distribution, and both are looked at as the index does. The long description is README.md with
# links that lead to REPOSITORY_URL (readme.sh); README.md is as it was when this ends.
set -euo pipefail

work=$(mktemp -d)
cp README.md "$work/README.md"
trap 'cp "$work/README.md" README.md; rm -rf "$work"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1

version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' __init__.py)
if [ "${REF_TYPE:-}" = tag ] && [ "${REF_NAME:-}" != "v$version" ]; then
  echo "tag ${REF_NAME:-}: __init__.py says version $version; expected the tag v$version" >&2
  exit 2
fi

python3 -m venv "$work/tools"
"$work/tools/bin/pip" install --quiet build twine
rm -rf dist
bash .github/publish/readme.sh "$version" < "$work/README.md" > README.md
"$work/tools/bin/python" -m build .
"$work/tools/bin/twine" check --strict dist/*

python3 -m venv "$work/fresh"
"$work/fresh/bin/pip" install --quiet "dist/opconform-$version-py3-none-any.whl"
(
  cd "$work"  # not the checkout
  "$work/fresh/bin/opconform" --version | grep -F "$version"
  "$work/fresh/bin/opconform" run onnx-reference --quiet --select 'onnx/ReduceMean-18/float32/1/*' --out "$work/results" \
    || [ $? -eq 1 ]  # whether the backend conforms is not asked here
)
