"""Make this checkout the first one that is published: `first_release.py https://github.com/OWNER/opconform`.

Before the first release nobody knows the repository's address, and pages tell how to install a clone. What they say
from then on stands beside it, in comments, and this script lets it take the place:

- in Markdown, `<!-- until the first release -->` TEXT `<!-- from the first release on` OTHER TEXT `-->`;
- in other files, lines that begin with `#: `.

`OWNER` becomes what the address says. Commit what it changed; run again, it changes nothing.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACES = ("*.md", "docs/*.md", ".github/**/*.md", ".github/**/*.yml", "mkdocs.yml", "pyproject.toml", "CITATION.cff")
MARKED = re.compile(
    r"<!-- until the first release -->\n(?P<now>.*?)<!-- from the first release on\n(?P<then>.*?)-->\n", re.DOTALL
)


def published(text: str, url: str) -> str:
    """Return the text of a file as it is from the first release on, of a repository at `url`."""
    text = MARKED.sub(lambda found: found["then"], text)
    text = re.sub(r"^#: ?", "", text, flags=re.MULTILINE)
    owner, name = url.split("/")[-2:]
    text = text.replace("https://github.com/OWNER/opconform", url)
    return text.replace("OWNER.github.io/opconform", f"{owner}.github.io/{name}").replace(
        "OWNER/opconform", f"{owner}/{name}"
    )


def main() -> None:
    """Rewrite the files in place, and print their names."""
    if len(sys.argv) != 2 or not re.fullmatch(r"https://[\w.-]+/[\w.-]+/[\w.-]*[\w-]", sys.argv[1]):
        sys.exit(
            f"{Path(__file__).name}: expected the repository's address, such as https://github.com/OWNER/opconform"
        )
    for file in sorted({file for place in PLACES for file in ROOT.glob(place)}):
        text = file.read_text(encoding="utf-8")
        if (new := published(text, sys.argv[1])) != text:
            file.write_text(new, encoding="utf-8")
            print(file.relative_to(ROOT))


if __name__ == "__main__":
    main()
