"""What all sections of a job share: strict shapes, no unknown keys, a description under every key."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Codes", "Percent", "Positive", "Seconds", "Section", "codes_listed_in_section"]

Codes = dict[str, str | list[str]]
Percent = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Section(BaseModel):
    """A section of a job file."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, strict=True)


def codes_listed_in_section(codes: str | list[str]) -> list[str]:
    """Return codes of which one may stand alone."""
    return [codes] if isinstance(codes, str) else codes
