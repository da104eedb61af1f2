"""Tiles between processes: the requester's side and the owner's."""
