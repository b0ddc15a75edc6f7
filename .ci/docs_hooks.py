"""Build the pages of a checkout with MkDocs: links that hold in the checkout hold in the site.

README, CONTRIBUTING, CHANGELOG and SECURITY become pages. A source file that a page links to becomes a page with its
text, and a folder one with the names of its files.
"""

import os.path
import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from pymdownx.slugs import slugify

ROOT = Path(__file__).resolve().parents[1]
MOVED = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
UNSEARCHED = "---\nsearch: {exclude: true}\n---\n"  # tables of figures, and source
LANGUAGES = {
    ".py": "python",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".json": "json",
    ".sh": "bash",
    ".c": "c",
    ".cpp": "cpp",
    ".hpp": "cpp",
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make anchors as GitHub makes them."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = slugify(case="lower")
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie outside of docs/, and what pages link to."""
    linked: set[str] = set()
    pages = MOVED | {f"docs/{file.src_uri}": file.src_uri for file in files.documentation_pages()}
    for path, uri in pages.items():
        text = _relinked((ROOT / path).read_text(encoding="utf-8"), PurePosixPath(path), uri, linked)
        if uri in files.src_uris:
            files.remove(files.src_uris[uri])
        files.append(
            File.generated(
                config, uri, content=UNSEARCHED + text if uri.startswith(tuple(config.extra["unsearched"])) else text
            )
        )
    for path in sorted(linked):
        files.append(File.generated(config, _page_of(path), content=UNSEARCHED + _source(path)))
    return files


def _relinked(text: str, page: PurePosixPath, uri: str, linked: set[str]) -> str:
    """Return a page with its links as the site needs them; adds the source files that it links to."""

    def new(match: re.Match[str]) -> str:
        path = os.path.normpath(page.parent / match[1])
        if path.startswith("docs/"):
            target = path.removeprefix("docs/")
        elif path in MOVED:
            target = MOVED[path]
        else:
            linked.add(path)
            target = _page_of(path)
        return f"]({os.path.relpath(target, PurePosixPath(uri).parent)}"

    text = re.sub(
        r"^<!--.*?-->\n", "", text, flags=re.DOTALL | re.MULTILINE
    )  # what holds from the first release on, too
    fences = re.split(r"(^```.*?^```)", text, flags=re.DOTALL | re.MULTILINE)
    fences[::2] = [re.sub(r"\]\((?![a-z]+:|#)([^)\s#]+)", new, part) for part in fences[::2]]
    return "".join(fences)


def _page_of(path: str) -> str:
    """Return the page of a source file; servers and archives leave out folders whose names begin with a dot."""
    return f"source/{'/'.join(part.lstrip('.') for part in path.split('/'))}.md"


def _source(path: str) -> str:
    file = ROOT / path
    if file.is_dir():
        body = "\n".join(f"- `{inner.name}`" for inner in sorted(file.iterdir()) if not inner.name.startswith("__"))
    else:
        body = f"````{LANGUAGES.get(file.suffix, 'text')}\n{file.read_text(encoding='utf-8')}\n````"
    return f"# {path}\n\n{body}\n"
