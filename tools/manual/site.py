"""Hook of mkdocs: the manual on its own, without the repository and without a network.

Links to files of the repository, which the site does not have, lead to `repo_url` in mkdocs.yml;
without it they become the path of the file. The one script that the theme takes from elsewhere,
for searching in pages opened from disk, is ours.
"""

from __future__ import annotations

import posixpath
import re
import shutil
from pathlib import Path
from typing import Any

_FOREIGN = "https://unpkg.com/iframe-worker/shim"
_OWN = Path(__file__).with_name("worker.js")
_FETCHED = re.compile(
    r"""<(?:(?:script|img|iframe)\b[^>]*?\bsrc|link\b[^>]*?\bhref)=["']?(?P<address>(?:https?:)?//[^"'>\s]*)"""
)
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


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Return a page of the site with our script in place of the foreign one."""
    folders = page.url.count("/")
    return output.replace(_FOREIGN, f"{'../' * folders}assets/{_OWN.name}")


def on_post_template(output_content: str, **_: Any) -> str:
    """Return a page that is none of the manual, such as 404.html, likewise."""
    return output_content.replace(_FOREIGN, f"assets/{_OWN.name}")


def on_post_build(config: Any, **_: Any) -> None:
    """Add the script to the site; refuse pages that would fetch anything from elsewhere."""
    site = Path(config["site_dir"])
    shutil.copy(_OWN, site / "assets" / _OWN.name)
    for page in site.rglob("*.html"):
        if fetched := _FETCHED.search(page.read_text(encoding="utf-8")):
            raise SystemExit(f"{page} fetches {fetched['address']}")


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
