"""Warnings that name the user's line."""

from __future__ import annotations

import warnings

from spartan_ng.callers import user_frame, user_line


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of the user's line that called this package."""
    warnings.warn(message, category, stacklevel=user_frame()[0])


__all__ = ["user_line", "warn_user"]
