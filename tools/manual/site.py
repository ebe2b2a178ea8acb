"""Hook of mkdocs: links from the manual to files of the repository, which the site does not have.

With `repo_url` in mkdocs.yml they lead there, without it they become the path of the file.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

_LINK = re.compile(r"\[(?P<text>[^\]]+)\]\((?P<target>[^)#:]+)(?P<anchor>#[^)]*)?\)")
_FENCE = re.compile(r"^(```.*?^```)", re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Return the text of a page with the links that leave the manual replaced."""
    folder = posixpath.join(Path(config["docs_dir"]).name, posixpath.dirname(page.file.src_uri))
    parts = _FENCE.split(markdown)
    return "".join(
        part if part.startswith("```") else with_outside_links(part, folder, config["repo_url"])
        for part in parts
    )


def with_outside_links(text: str, folder: str, repository: str | None) -> str:
    """Replace links of a page in `folder` (relative to the repository) to files outside docs/."""

    def replaced(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link["target"]))
        if path.startswith("docs/"):
            return link[0]
        if repository:
            place = f"{repository.rstrip('/')}/blob/main/{path}{link['anchor'] or ''}"
            return f"[{link['text']}]({place})"
        shown = f"`{path}`"
        same = link["text"].strip("`") in (path, posixpath.basename(path))
        return shown if same else f"{link['text']} ({shown})"

    return _LINK.sub(replaced, text)
