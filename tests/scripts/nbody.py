"""Planets under gravity by leapfrog, and a double pendulum by Runge-Kutta."""

import numpy as np

np.set_printoptions(precision=5, suppress=True)
G = 1.0
mass = np.array([10.0, 1.0, 0.5, 0.1])
pos = np.array([[0.0, 0, 0], [2, 0, 0], [0, 4, 0], [0, 0, 6]])
vel = np.array([[0.0, 0, 0], [0, 2.2, 0], [-1.5, 0, 0], [0, 1.2, 0]])


def acceleration(pos):
    dx = pos[np.newaxis, :, :] - pos[:, np.newaxis, :]
    r2 = (dx**2).sum(axis=-1) + 1e-3
    inv = r2**-1.5
    np.fill_diagonal(inv, 0.0)
    return G * (dx * inv[..., None] * mass[None, :, None]).sum(axis=1)


def energy():
    kinetic = 0.5 * np.sum(mass * np.sum(vel**2, axis=1))
    i, j = np.triu_indices(len(mass), 1)
    return kinetic - G * np.sum(mass[i] * mass[j] / np.linalg.norm(pos[i] - pos[j], axis=1))


a = acceleration(pos)
before = energy()
dt = 0.01
for step in range(60):
    vel += 0.5 * dt * a
    pos += dt * vel
    a = acceleration(pos)
    vel += 0.5 * dt * a
    if step % 20 == 0:
        print(step, pos[1])
print(pos)
print(f"{before:.6f} {energy():.4f}", np.abs(energy() - before) < 0.1)
print(np.average(pos, axis=0, weights=mass))


def pendulum(s, m1=1.0, m2=1.0, l1=1.0, l2=1.0, g=9.81):
    t1, t2, w1, w2 = s
    d = t1 - t2
    M = np.array([[(m1 + m2) * l1, m2 * l2 * np.cos(d)], [l1 * np.cos(d), l2]])
    f = np.array(
        [-m2 * l2 * w2**2 * np.sin(d) - (m1 + m2) * g * np.sin(t1), l1 * w1**2 * np.sin(d) - g * np.sin(t2)]
    )
    return np.array([w1, w2, *np.linalg.solve(M, f)])


s = np.array([np.pi / 2, np.pi / 2, 0, 0])
for _ in range(30):
    k1 = pendulum(s)
    k2 = pendulum(s + 0.005 * k1)
    k3 = pendulum(s + 0.005 * k2)
    k4 = pendulum(s + 0.01 * k3)
    s = s + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
print(s)
