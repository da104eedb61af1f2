"""What a plan depends on besides its graph."""

from __future__ import annotations

from msgspec import Struct

from spartan_ng.costs import Profile


class Settings(Struct, frozen=True):
    """What a plan depends on besides its graph."""

    profile: Profile
    forced_tiling: str | None = None
    fusion: str = "cost"
    solver: str = "exact"
    duplicate_budget_bytes: int | None = None
    products: str = "cuboid"
    """How operands reach the tasks of a product, see `strategies`."""
    reproducible: bool = False
    """Whether stages keep the last bits."""
    scan_fan: int = 32
    """Parts of a scan's line whose states are collected at one place."""

    @property
    def may_store_products(self) -> bool:
        """Whether a product may be stored in place of what reads it being fused, to move less."""
        free = self.products == "cuboid" and self.fusion == "cost" and self.forced_tiling is None
        return free and self.profile.workers > 1 and not self.profile.limited
