"""Write the page that every report holds from the manual: ``python docs/safe_page.py``; a test says when to."""

import re
from pathlib import Path

import markdown

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "src" / "cellguard" / "jobs" / "report" / "templates" / "safe.html"


def page() -> str:
    """Return the page as HTML: without its title, links to other pages, and what changes from version to version."""
    text = (HERE / "safe.md").read_text("utf-8")
    text = re.sub(r"(?ms)^## 7\. Price.*?(?=^## |\Z)", "", text)
    text = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", text.partition("\n")[2])
    html = markdown.markdown(text, extensions=["tables"])
    return re.sub(r"<(/?)h2>", r"<\1h3>", html) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
