"""What is made of an answer: the variable that keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from larik_nb.notebook.magics import LarikMagics
    from larik_nb.notebook.options import Asked
    from larik_nb.types import Message


def keep(magics: LarikMagics, asked: Asked, message: Message) -> None:
    """Do with the finished answer what the options say; it is on screen already."""
    if asked.out:
        magics.ip.user_ns[asked.out] = message
