"""The texts of the page: one file per language."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any

__all__ = ["LANGUAGES", "collect_page_texts", "detect_language", "read_texts"]

LANGUAGES = {"en": "English", "de": "Deutsch"}
"""Code -> name of the language in that language; each has a file in the folder ``texts``."""


@cache
def read_texts(language: str) -> dict[str, str]:
    """Return every text of a language by its key, ``page.name``."""
    path = resources.files("cellguard.web") / "texts" / f"{language}.toml"
    return dict(_flatten_texts("", tomllib.loads(path.read_text(encoding="utf-8"))))


def collect_page_texts(language: str) -> dict[str, str]:
    """Return the texts of a language; messages of the program come with their English text, by which they are found."""
    english = read_texts("en")
    said = {f"english.{key}": english[key] for key in english if key.startswith("said.")}
    return read_texts(language) | ({} if language == "en" else said)


def _flatten_texts(before: str, entries: dict[str, Any]) -> list[tuple[str, str]]:
    out: list[tuple[str, str]] = []
    for name, entry in entries.items():
        out += (
            _flatten_texts(f"{before}{name}.", entry) if isinstance(entry, dict) else [(f"{before}{name}", str(entry))]
        )
    return out


def detect_language(cookie: str | None, accepted: str) -> str:
    """Return the language of a request: the one chosen, or the browser's first available preference.

    >>> detect_language(None, "fr,de-CH;q=0.8,en;q=0.5"), detect_language("en", "de")
    ('de', 'en')
    >>> detect_language("xx", "")
    'en'
    """
    if cookie in LANGUAGES:
        return str(cookie)
    for entry in accepted.split(","):
        code = entry.partition(";")[0].strip().lower()[:2]
        if code in LANGUAGES:
            return code
    return "en"
