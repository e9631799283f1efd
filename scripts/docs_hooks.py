"""What mkdocs does to the pages of docs/ for the site, which a reader of the repository does not need.

A line `<!-- readme: HEADING -->` is replaced by that section of README.md, so that its figures stand in one place. A
link that leaves docs/ becomes the path of the file in the repository, and is an error if there is no such file. Pages
of adr/ other than its index are part of the site without a place in the navigation.
"""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.exceptions import PluginError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")
SECTION = re.compile(r"^<!-- readme: (.+) -->$", re.MULTILINE)
COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)


def readme_section(heading: str) -> str:
    """The text of README's section `heading`, with its links as seen from docs/. Raises PluginError."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise PluginError(f"README.md has no section {heading!r}")
    return COMMENT.sub("", found[1]).replace("](docs/", "](").strip()


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Returns the page's text for the site. Raises PluginError for a link to a file that does not exist."""
    here = (DOCS / page.file.src_uri).parent

    def link(match: re.Match[str]) -> str:
        text, path, anchor = match.groups()
        target = (here / path).resolve()
        if target.is_relative_to(DOCS):
            if target.is_dir():
                return f"[{text}]({path.rstrip('/')}/README.md{anchor or ''})"
            return match[0]
        if not target.exists():
            raise PluginError(f"{page.file.src_uri}: the link to {path} leads nowhere")
        name = target.relative_to(ROOT).as_posix()
        return f"`{name}`" if text.strip("`") in {name, target.name} else f"{text} (`{name}`)"

    markdown = SECTION.sub(lambda match: readme_section(match[1]), markdown)
    return LINK.sub(link, markdown)
