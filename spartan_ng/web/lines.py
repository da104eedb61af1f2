"""Lines of the log, on a board."""

from __future__ import annotations

import logging

from spartan_ng.web.board import Board


class Lines(logging.Handler):
    """Shows what is logged from INFO on."""

    def __init__(self, board: Board) -> None:
        super().__init__(logging.INFO)
        self._board = board

    def emit(self, record: logging.LogRecord) -> None:
        """Show a line."""
        self._board.logged(record.name, record.levelname.lower(), record.getMessage())
