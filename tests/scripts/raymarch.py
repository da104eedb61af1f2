"""A sphere and a floor drawn in letters: rays marched through a field of distances, lit and shaded."""

import numpy as np

width, height = 48, 20
u, v = np.meshgrid(np.linspace(-1.2, 1.2, width), np.linspace(0.9, -0.9, height))
rays = np.stack([u, v, np.full_like(u, 1.5)], axis=-1)
rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
light = np.array([-0.5, 0.8, -0.6])
light /= np.sqrt(light @ light)


def field(p):
    """The distance to the nearest surface."""
    ball = np.linalg.norm(p - np.array([0, 0, 3.0]), axis=-1) - 1
    floor = p[..., 1] + 1
    return np.minimum(ball, floor)


travelled = np.zeros((height, width))
for _ in range(24):
    step = field(rays * travelled[..., None])
    travelled += np.where(travelled < 20, step, 0)
hit = travelled < 20
points = rays * travelled[..., None]
normals = np.zeros_like(points)
for axis in range(3):
    shift = np.zeros(3)
    shift[axis] = 1e-4
    normals[..., axis] = field(points + shift) - field(points - shift)
length = np.linalg.norm(normals, axis=-1, keepdims=True)
normals = np.divide(normals, length, out=np.zeros_like(normals), where=length > 0)
shade = np.clip(np.einsum("ijk,k->ij", normals, light), 0, 1)
checks = (np.floor(points[..., 0]) + np.floor(points[..., 2])) % 2 == 0
shade[(points[..., 1] < -0.99) & checks] *= 0.4
letters = np.array(list(" .:-=+*#%@"))
picture = np.where(hit, letters[(shade * 9).astype(int)], " ")
for line in picture:
    print("".join(line).rstrip())
print(hit.sum(), shade[hit].mean().round(4), np.unique(picture).size, picture.dtype, travelled[0, 0] >= 20)
