"""What an array is: cells and the handles that see them, views, keys, and the one door to eager work."""
