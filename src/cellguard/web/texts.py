"""The words of the page: one file for each language."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any

__all__ = ["LANGUAGES", "language_of_request", "texts_for_page", "texts_of"]

LANGUAGES = {"en": "English", "de": "Deutsch"}
"""Code -> how the language calls itself; each has a file in the folder ``texts``."""


@cache
def texts_of(language: str) -> dict[str, str]:
    """Return every text of a language by its key, ``page.name``."""
    path = resources.files("cellguard.web") / "texts" / f"{language}.toml"
    return dict(_browser_texts_by_key("", tomllib.loads(path.read_text(encoding="utf-8"))))


def texts_for_page(language: str) -> dict[str, str]:
    """Return the texts of a language, and beside what the program says itself its English, by which it is found."""
    english = texts_of("en")
    said = {f"english.{key}": english[key] for key in english if key.startswith("said.")}
    return texts_of(language) | ({} if language == "en" else said)


def _browser_texts_by_key(before: str, entries: dict[str, Any]) -> list[tuple[str, str]]:
    out: list[tuple[str, str]] = []
    for name, entry in entries.items():
        out += (
            _browser_texts_by_key(f"{before}{name}.", entry)
            if isinstance(entry, dict)
            else [(f"{before}{name}", str(entry))]
        )
    return out


def language_of_request(cookie: str | None, accepted: str) -> str:
    """Return the language of a request: the one that was chosen, or the first that the browser asks for.

    >>> language_of_request(None, "fr,de-CH;q=0.8,en;q=0.5"), language_of_request("en", "de")
    ('de', 'en')
    >>> language_of_request("xx", "")
    'en'
    """
    if cookie in LANGUAGES:
        return str(cookie)
    for entry in accepted.split(","):
        code = entry.partition(";")[0].strip().lower()[:2]
        if code in LANGUAGES:
            return code
    return "en"
