"""Try a built wheel as a new user would: do what the quick starts say, each in an empty folder with the examples.

`quick_starts.py WHEEL` makes the environments that the pages make, and installs WHEEL where they install opconform.
With `--environment DIR`, all pages use that environment, in which it is installed.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("start-vendor.md", "start-kernel-or-model.md", "start-nightly.md", "start-cpp.md")
INSTALL = re.compile(r"^pip install (?:-e )?'?(?:\.|opconform)(\[[\w,-]+\])?'?$", re.MULTILINE)
ENVIRONMENT = re.compile(r"^(?:python3 -m venv|\. )\s*\.venv\S*$", re.MULTILINE)
CLONE = re.compile(r"^(?:git clone|cd opconform\b).*$", re.MULTILINE)
HIDDEN = re.compile(r"<!--.*?-->\n?", re.DOTALL)


def script(page: str, wheel: Path | None) -> str:
    """Return what the page says as a script: files written, commands run.

    A command whose output the page shows may exit 1: that a backend does not conform is what it shows. Comments, with
    what the page says from the first release on, are left out: a reader does not see them.
    """
    lines = ["set -eu"]
    for language, block in re.findall(r"^```(\w+)\n(.*?)^```$", HIDDEN.sub("", page), re.DOTALL | re.MULTILINE):
        if language == "console":
            lines += [f"{command} || [ $? -eq 1 ]" for command in re.findall(r"^\$ (.*)$", block, re.MULTILINE)]
        elif language == "bash":
            lines.append(CLONE.sub("", block))
        elif name := re.match(r"(?:#|//) ([\w.]+)\n", block):
            lines.append(f"cat > {name[1]} <<'END OF FILE'\n{block}END OF FILE")
    text = "\n".join(lines)
    if not INSTALL.search(text):
        raise SystemExit("the page does not install opconform")
    if wheel is None:
        return ENVIRONMENT.sub("", INSTALL.sub("", text))
    return INSTALL.sub(lambda found: f"pip install --quiet '{wheel}{found[1] or ''}'", text)


def main() -> None:
    """Try each page; ends with the exit status of the first that fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path, nargs="?")
    parser.add_argument("--environment", type=Path)
    given = parser.parse_args()
    if (given.wheel is None) == (given.environment is None):
        parser.error("name the wheel, or an environment that has it")
    for name in PAGES:
        print(f"== {name}", flush=True)
        text = script((ROOT / "docs" / name).read_text(encoding="utf-8"), given.wheel and given.wheel.resolve())
        if given.environment is not None:
            text = f"PATH='{given.environment.resolve() / 'bin'}':$PATH\n{text}"
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(ROOT / "examples", Path(folder) / "examples")
            status = subprocess.run(["bash", "-c", text], cwd=folder, check=False).returncode
        if status:
            sys.exit(f"{name}: exit {status}")


if __name__ == "__main__":
    main()
